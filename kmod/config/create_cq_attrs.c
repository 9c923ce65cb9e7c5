// SPDX-License-Identifier: GPL-2.0
/* create_cq() and reg_user_mr_dmabuf() get the attributes, not the udata. */
#include <linux/build_bug.h>
#include <rdma/ib_verbs.h>

int probe(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
	  struct uverbs_attr_bundle *attrs);

static const struct ib_device_ops ops;

static_assert(__same_type(ops.create_cq, &probe));
