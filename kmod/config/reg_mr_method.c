// SPDX-License-Identifier: GPL-2.0
/* Registration as an ioctl method with attributes: Linux 7.2 has it, 6.12 not. */
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>

static const int probe[] = { UVERBS_METHOD_REG_MR, UVERBS_ATTR_REG_MR_IOVA };
