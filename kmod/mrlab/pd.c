// SPDX-License-Identifier: GPL-2.0
/* User contexts and protection domains. */
#include <linux/sched.h>
#include <rdma/uverbs_ioctl.h>
#include "lab.h"

static int mrlab_alloc_ucontext(struct ib_ucontext *context,
				struct ib_udata *udata)
{
	struct mrlab_alloc_ucontext_resp resp = {
		.size = sizeof(resp),
		.max_inline_bytes = MRLAB_MAX_INLINE,
		.real_iommu = !!to_mrlab(context->device)->domain,
	};

	return ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
}

static void mrlab_dealloc_ucontext(struct ib_ucontext *context)
{
}

/* Nothing of the device is mapped into a process: nothing is to be taken away. */
static void mrlab_disassociate_ucontext(struct ib_ucontext *context)
{
}

static int mrlab_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct mrlab_pd *pd = to_mrlab_pd(ibpd);
	int err;

	err = xa_alloc(&to_mrlab(ibpd->device)->pds, &pd->number, pd,
		       XA_LIMIT(1, MRLAB_MAX_PD), GFP_KERNEL);
	if (err)
		return err == -EBUSY ? -ENOMEM : err;
	pd->tgid = task_tgid_nr(current);
	get_task_comm(pd->comm, current);
	return 0;
}

static int mrlab_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	xa_erase(&to_mrlab(ibpd->device)->pds, to_mrlab_pd(ibpd)->number);
	return 0;
}

const struct ib_device_ops mrlab_pd_ops = {
	.alloc_ucontext = mrlab_alloc_ucontext,
	.dealloc_ucontext = mrlab_dealloc_ucontext,
	.disassociate_ucontext = mrlab_disassociate_ucontext,
	.alloc_pd = mrlab_alloc_pd,
	.dealloc_pd = mrlab_dealloc_pd,
	INIT_RDMA_OBJ_SIZE(ib_ucontext, mrlab_ucontext, ibuc),
	INIT_RDMA_OBJ_SIZE(ib_pd, mrlab_pd, ibpd),
};
