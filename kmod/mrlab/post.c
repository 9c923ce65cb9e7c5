// SPDX-License-Identifier: GPL-2.0
/* Work requests of the core's post commands, as the engine takes them. */
#include <linux/uaccess.h>
#include "lab.h"

static bool mrlab_opcode_known(const struct mrlab_qp *qp,
			       enum ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_SEND_WITH_INV:
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return true;
	case IB_WR_RDMA_READ:
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return qp->ibqp.qp_type == IB_QPT_RC && qp->attr.max_rd_atomic;
	default:
		return false;
	}
}

static int mrlab_store_sges(struct mrlab_wqe *wqe, const struct ib_sge *sge,
			    int count, u32 max_sge)
{
	u64 length = 0;
	int i;

	if (count < 0 || count > max_sge)
		return -EINVAL;
	for (i = 0; i < count; i++)
		length += sge[i].length;
	if (length > MRLAB_MAX_MESSAGE)
		return -EINVAL;
	memcpy(wqe->sge, sge, count * sizeof(*sge));
	wqe->nsge = count;
	wqe->length = length;
	return 0;
}

/* The bytes of user memory are taken now, as the caller's: no key counts. */
static int mrlab_store_inline(struct mrlab_wqe *wqe, const struct ib_sge *sge,
			      int count, u32 max_inline)
{
	u32 length = 0;
	int i;

	for (i = 0; i < count; i++) {
		if (sge[i].length > max_inline - length)
			return -EINVAL;
		if (copy_from_user(wqe->data + length,
				   u64_to_user_ptr(sge[i].addr), sge[i].length))
			return -EFAULT;
		length += sge[i].length;
	}
	wqe->length = length;
	return 0;
}

static int mrlab_store_send(struct mrlab_qp *qp, struct mrlab_wqe *wqe,
			    const struct ib_send_wr *wr)
{
	const int flags = IB_SEND_FENCE | IB_SEND_SIGNALED | IB_SEND_SOLICITED |
			  IB_SEND_INLINE;

	if (!mrlab_opcode_known(qp, wr->opcode) || wr->send_flags & ~flags)
		return -EINVAL;
	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	wqe->send_flags = wr->send_flags;
	wqe->inlined = wr->send_flags & IB_SEND_INLINE;
	wqe->tries = 0;
	wqe->rnr_tries = 0;
	wqe->ex.imm_data = wr->ex.imm_data;
	switch (wr->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
		wqe->remote_addr = rdma_wr(wr)->remote_addr;
		wqe->rkey = rdma_wr(wr)->rkey;
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		wqe->remote_addr = atomic_wr(wr)->remote_addr;
		wqe->rkey = atomic_wr(wr)->rkey;
		wqe->compare_add = atomic_wr(wr)->compare_add;
		wqe->swap = atomic_wr(wr)->swap;
		break;
	default:
		break;
	}
	if (!wqe->inlined)
		return mrlab_store_sges(wqe, wr->sg_list, wr->num_sge,
					qp->init.cap.max_send_sge);
	if (wr->opcode == IB_WR_RDMA_READ ||
	    wr->opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
	    wr->opcode == IB_WR_ATOMIC_FETCH_AND_ADD)
		return -EINVAL;
	return mrlab_store_inline(wqe, wr->sg_list, wr->num_sge,
				  qp->init.cap.max_inline_data);
}

static int mrlab_post_one_send(struct mrlab_qp *qp, const struct ib_send_wr *wr)
{
	struct mrlab_wqe *wqe = mrlab_queue_tail(&qp->sq);
	int err;

	if (!wqe)
		return -ENOMEM;
	err = mrlab_store_send(qp, wqe, wr);
	if (!err)
		mrlab_queue_push(&qp->sq);
	return err;
}

static int mrlab_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
			   const struct ib_send_wr **bad_wr)
{
	struct mrlab_qp *qp = to_mrlab_qp(ibqp);
	int err = 0;

	mutex_lock(&qp->posting);
	for (; wr; wr = wr->next) {
		err = READ_ONCE(qp->state) < IB_QPS_RTS ? -EINVAL :
			mrlab_post_one_send(qp, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	mutex_unlock(&qp->posting);
	mrlab_engine_run(qp, true);
	return err;
}

static int mrlab_post_one_recv(struct mrlab_qp *qp, const struct ib_recv_wr *wr)
{
	struct mrlab_wqe *wqe;
	int err = -ENOMEM;

	spin_lock(&qp->receiving);
	wqe = mrlab_queue_tail(&qp->rq);
	if (wqe) {
		wqe->wr_id = wr->wr_id;
		wqe->inlined = false;
		err = mrlab_store_sges(wqe, wr->sg_list, wr->num_sge,
				       qp->init.cap.max_recv_sge);
		if (!err)
			mrlab_queue_push(&qp->rq);
	}
	spin_unlock(&qp->receiving);
	return err;
}

static int mrlab_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
			   const struct ib_recv_wr **bad_wr)
{
	struct mrlab_qp *qp = to_mrlab_qp(ibqp);
	int err = 0;

	for (; wr; wr = wr->next) {
		err = READ_ONCE(qp->state) == IB_QPS_RESET ? -EINVAL :
			mrlab_post_one_recv(qp, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	if (READ_ONCE(qp->state) == IB_QPS_ERR)
		mrlab_engine_run(qp, true);	/* flushes */
	return err;
}

const struct ib_device_ops mrlab_post_ops = {
	.post_send = mrlab_post_send,
	.post_recv = mrlab_post_recv,
};
