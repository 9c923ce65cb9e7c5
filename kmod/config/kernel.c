// SPDX-License-Identifier: GPL-2.0
/* Headers of every kernel that mrscope knows. */
#include <linux/module.h>
#include <rdma/ib_verbs.h>
