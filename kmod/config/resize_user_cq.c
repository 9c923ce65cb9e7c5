// SPDX-License-Identifier: GPL-2.0
/* Completion queues of users are resized by an operation of their own. */
#include <rdma/ib_verbs.h>

static const struct ib_device_ops __maybe_unused ops = { .resize_user_cq = NULL };
