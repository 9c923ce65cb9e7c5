// SPDX-License-Identifier: GPL-2.0
/* Completion queues: a ring of work completions, and who is to be woken. */
#include <linux/mm.h>
#include "compat.h"
#include "lab.h"

static int mrlab_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			   struct mrlab_op_data *data)
{
	struct mrlab_dev *dev = to_mrlab(ibcq->device);
	struct mrlab_cq *cq = to_mrlab_cq(ibcq);

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->cqe < 1 || attr->cqe > MRLAB_MAX_CQE)
		return -EINVAL;
	if (atomic_inc_return(&dev->cqs) > MRLAB_MAX_CQ)
		goto err_limit;
	spin_lock_init(&cq->lock);
	cq->size = attr->cqe;
	cq->ring = kvcalloc(cq->size, sizeof(*cq->ring), GFP_KERNEL_ACCOUNT);
	if (!cq->ring)
		goto err_limit;
	ibcq->cqe = cq->size;
	return 0;

err_limit:
	atomic_dec(&dev->cqs);
	return -ENOMEM;
}

static int mrlab_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	kvfree(to_mrlab_cq(ibcq)->ring);
	atomic_dec(&to_mrlab(ibcq->device)->cqs);
	return 0;
}

static int mrlab_resize_cq(struct ib_cq *ibcq, MRLAB_CQE_COUNT wanted,
			   struct ib_udata *udata)
{
	struct mrlab_cq *cq = to_mrlab_cq(ibcq);
	struct ib_wc *ring, *old;
	u32 size = wanted;
	int err = 0;
	u32 i;

	if (size < 1 || size > MRLAB_MAX_CQE)
		return -EINVAL;
	ring = kvcalloc(size, sizeof(*ring), GFP_KERNEL_ACCOUNT);
	if (!ring)
		return -ENOMEM;
	spin_lock(&cq->lock);
	old = ring;
	if (cq->count > size) {
		err = -EINVAL;
	} else {
		for (i = 0; i < cq->count; i++)
			ring[i] = cq->ring[(cq->head + i) % cq->size];
		old = cq->ring;
		cq->ring = ring;
		cq->size = size;
		cq->head = 0;
		ibcq->cqe = size;
	}
	spin_unlock(&cq->lock);
	kvfree(old);
	return err;
}

/* False, and an event once, where the queue is full: a completion is lost. */
bool mrlab_cq_add(struct ib_cq *ibcq, const struct ib_wc *wc, bool solicited)
{
	struct mrlab_cq *cq = to_mrlab_cq(ibcq);
	bool wake = false, overrun = false, full;

	spin_lock(&cq->lock);
	full = cq->count == cq->size;
	if (full) {
		overrun = !cq->overrun;
		cq->overrun = true;
	} else {
		cq->ring[(cq->head + cq->count++) % cq->size] = *wc;
		wake = cq->armed && (solicited || !cq->solicited_only ||
				     wc->status != IB_WC_SUCCESS);
		if (wake)
			cq->armed = false;
	}
	spin_unlock(&cq->lock);

	if (wake && ibcq->comp_handler)
		ibcq->comp_handler(ibcq, ibcq->cq_context);
	if (overrun && ibcq->event_handler) {
		struct ib_event event = {
			.device = ibcq->device,
			.element.cq = ibcq,
			.event = IB_EVENT_CQ_ERR,
		};

		ibcq->event_handler(&event, ibcq->cq_context);
	}
	return !full;
}

/* The completions of a queue pair that is no more. */
void mrlab_cq_purge(struct ib_cq *ibcq, const struct ib_qp *plate)
{
	struct mrlab_cq *cq = to_mrlab_cq(ibcq);
	u32 i, kept = 0;

	spin_lock(&cq->lock);
	for (i = 0; i < cq->count; i++) {
		struct ib_wc *wc = &cq->ring[(cq->head + i) % cq->size];

		if (wc->qp != plate)
			cq->ring[(cq->head + kept++) % cq->size] = *wc;
	}
	cq->count = kept;
	spin_unlock(&cq->lock);
}

static int mrlab_poll_cq(struct ib_cq *ibcq, int entries, struct ib_wc *wc)
{
	struct mrlab_cq *cq = to_mrlab_cq(ibcq);
	int i;

	spin_lock(&cq->lock);
	for (i = 0; i < entries && cq->count; i++) {
		wc[i] = cq->ring[cq->head];
		cq->head = (cq->head + 1) % cq->size;
		cq->count--;
	}
	spin_unlock(&cq->lock);
	return i;
}

static int mrlab_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct mrlab_cq *cq = to_mrlab_cq(ibcq);
	int missed;

	spin_lock(&cq->lock);
	cq->armed = true;
	cq->solicited_only = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	missed = flags & IB_CQ_REPORT_MISSED_EVENTS && cq->count;
	spin_unlock(&cq->lock);
	return missed;
}

const struct ib_device_ops mrlab_cq_ops = {
	.create_cq = mrlab_create_cq,
	.destroy_cq = mrlab_destroy_cq,
	.MRLAB_RESIZE_CQ = mrlab_resize_cq,
	.poll_cq = mrlab_poll_cq,
	.req_notify_cq = mrlab_req_notify_cq,
	INIT_RDMA_OBJ_SIZE(ib_cq, mrlab_cq, ibcq),
};
