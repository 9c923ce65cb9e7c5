// SPDX-License-Identifier: GPL-2.0
/* Registration takes a handle for processing hints. */
#include <linux/build_bug.h>
#include <rdma/ib_verbs.h>

struct ib_mr *probe(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access,
		    struct ib_dmah *dmah, struct ib_udata *udata);

static const struct ib_device_ops ops;

static_assert(__same_type(ops.reg_user_mr, &probe));
