// SPDX-License-Identifier: GPL-2.0
/* A user buffer that drivers pin by its description. */
#include <rdma/ib_umem.h>
#include <rdma/ib_user_ioctl_verbs.h>

static const struct ib_uverbs_buffer_desc probe = { .addr = 0, .length = 0 };
