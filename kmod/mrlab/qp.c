// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs: their states, and who may hold them.
 *
 * A completion names its queue pair by a pointer, which the core follows after
 * it has polled, without a reference: the queue pair may be gone by then.  So
 * completions point to a plate: a struct ib_qp that has a number and nothing
 * else, and that stays as long as the device.
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <rdma/ib_addr.h>
#include <rdma/uverbs_ioctl.h>
#include "lab.h"

#define MRLAB_FIRST_QP	2	/* 0 and 1 are the subnet's */

static struct ib_qp *mrlab_plate(struct mrlab_dev *dev, u32 number)
{
	struct ib_qp *plate = xa_load(&dev->plates, number);

	if (plate)
		return plate;
	plate = kzalloc(sizeof(*plate), GFP_KERNEL);
	if (!plate)
		return NULL;
	plate->device = &dev->ibdev;
	plate->qp_num = number;
	if (xa_err(xa_store(&dev->plates, number, plate, GFP_KERNEL))) {
		kfree(plate);
		return NULL;
	}
	return plate;
}

void mrlab_plates_destroy(struct mrlab_dev *dev)
{
	struct ib_qp *plate;
	unsigned long number;

	xa_for_each(&dev->plates, number, plate)
		kfree(plate);
	xa_destroy(&dev->plates);
}

/* With a reference, which holds destruction up; or NULL. */
struct mrlab_qp *mrlab_qp_get(struct mrlab_dev *dev, u32 number)
{
	struct mrlab_qp *qp;

	/* Not RCU: the core frees a queue pair at once. */
	xa_lock(&dev->qps);
	qp = xa_load(&dev->qps, number);
	if (qp && !refcount_inc_not_zero(&qp->users))
		qp = NULL;
	xa_unlock(&dev->qps);
	return qp;
}

void mrlab_qp_event(struct mrlab_qp *qp, enum ib_event_type type)
{
	struct ib_event event = {
		.device = qp->ibqp.device,
		.element.qp = &qp->ibqp,
		.event = type,
	};

	if (qp->ibqp.event_handler)
		qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
}

static int mrlab_check_init(const struct ib_qp_init_attr *init)
{
	const struct ib_qp_cap *cap = &init->cap;

	if ((init->qp_type != IB_QPT_RC && init->qp_type != IB_QPT_UC) ||
	    init->srq || init->xrcd || init->rwq_ind_tbl || init->create_flags)
		return -EOPNOTSUPP;
	if (!init->send_cq || !init->recv_cq ||
	    cap->max_send_wr > MRLAB_MAX_WR || cap->max_recv_wr > MRLAB_MAX_WR ||
	    cap->max_send_sge > MRLAB_MAX_SGE ||
	    cap->max_recv_sge > MRLAB_MAX_SGE ||
	    cap->max_inline_data > MRLAB_MAX_INLINE)
		return -EINVAL;
	return 0;
}

static int mrlab_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
			   struct ib_udata *udata)
{
	struct mrlab_dev *dev = to_mrlab(ibqp->device);
	struct mrlab_qp *qp = to_mrlab_qp(ibqp);
	u32 number;
	int err;

	if (!udata)
		return -EOPNOTSUPP;
	err = mrlab_check_init(init);
	if (err)
		return err;
	/* Numbers come again late: an old peer does not reach a new queue pair. */
	err = xa_alloc_cyclic(&dev->qps, &number, NULL,
			      XA_LIMIT(MRLAB_FIRST_QP,
				       MRLAB_FIRST_QP + MRLAB_MAX_QP - 1),
			      &dev->next_qp, GFP_KERNEL);
	if (err < 0)
		return err == -EBUSY ? -ENOMEM : err;

	err = -ENOMEM;
	qp->plate = mrlab_plate(dev, number);
	qp->bounce = (void *)__get_free_page(GFP_KERNEL_ACCOUNT);
	if (!qp->plate || !qp->bounce)
		goto err_number;
	err = mrlab_queue_init(&qp->sq, init->cap.max_send_wr,
			       init->cap.max_send_sge, init->cap.max_inline_data);
	if (err)
		goto err_number;
	err = mrlab_queue_init(&qp->rq, init->cap.max_recv_wr,
			       init->cap.max_recv_sge, 0);
	if (err)
		goto err_sq;

	mutex_init(&qp->engine);
	mutex_init(&qp->responder);
	mutex_init(&qp->posting);
	spin_lock_init(&qp->receiving);
	INIT_DELAYED_WORK(&qp->work, mrlab_engine_work);
	init_completion(&qp->unused);
	refcount_set(&qp->users, 1);
	qp->init = *init;
	qp->tgid = task_tgid_nr(current);
	get_task_comm(qp->comm, current);
	ibqp->qp_num = number;
	xa_store(&dev->qps, number, qp, GFP_KERNEL);
	return 0;

err_sq:
	mrlab_queue_destroy(&qp->sq);
err_number:
	free_page((unsigned long)qp->bounce);
	xa_erase(&dev->qps, number);
	return err;
}

static int mrlab_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct xarray *qps = &to_mrlab(ibqp->device)->qps;
	struct mrlab_qp *qp = to_mrlab_qp(ibqp);

	WRITE_ONCE(qp->state, IB_QPS_ERR);
	/* Its number stays taken until its completions are gone. */
	xa_store(qps, ibqp->qp_num, NULL, GFP_KERNEL);
	mrlab_qp_put(qp);
	wait_for_completion(&qp->unused);
	cancel_delayed_work_sync(&qp->work);
	mrlab_cq_purge(ibqp->send_cq, qp->plate);
	mrlab_cq_purge(ibqp->recv_cq, qp->plate);
	xa_erase(qps, ibqp->qp_num);
	mrlab_queue_destroy(&qp->rq);
	mrlab_queue_destroy(&qp->sq);
	free_page((unsigned long)qp->bounce);
	return 0;
}

static int mrlab_check_attr(const struct ib_qp_attr *attr, int mask)
{
	if (mask & ~IB_QP_ATTR_STANDARD_BITS || mask & (IB_QP_ALT_PATH | IB_QP_CAP |
							IB_QP_PATH_MIG_STATE))
		return -EOPNOTSUPP;
	if ((mask & IB_QP_PORT && attr->port_num != 1) ||
	    (mask & IB_QP_PKEY_INDEX && attr->pkey_index) ||
	    (mask & IB_QP_PATH_MTU && (attr->path_mtu < IB_MTU_256 ||
				       attr->path_mtu > IB_MTU_4096)) ||
	    (mask & IB_QP_MAX_QP_RD_ATOMIC &&
	     attr->max_rd_atomic > MRLAB_MAX_RD_ATOMIC) ||
	    (mask & IB_QP_MAX_DEST_RD_ATOMIC &&
	     attr->max_dest_rd_atomic > MRLAB_MAX_RD_ATOMIC) ||
	    (mask & IB_QP_TIMEOUT && attr->timeout > 31) ||
	    (mask & IB_QP_RETRY_CNT && attr->retry_cnt > 7) ||
	    (mask & IB_QP_RNR_RETRY && attr->rnr_retry > 7) ||
	    (mask & IB_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31))
		return -EINVAL;
	return 0;
}

static void mrlab_store_attr(struct mrlab_qp *qp, const struct ib_qp_attr *attr,
			     int mask)
{
	struct ib_qp_attr *own = &qp->attr;

	if (mask & IB_QP_ACCESS_FLAGS)
		own->qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_PKEY_INDEX)
		own->pkey_index = attr->pkey_index;
	if (mask & IB_QP_PORT)
		own->port_num = attr->port_num;
	if (mask & IB_QP_QKEY)
		own->qkey = attr->qkey;
	if (mask & IB_QP_AV)
		own->ah_attr = attr->ah_attr;
	if (mask & IB_QP_PATH_MTU)
		own->path_mtu = attr->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		own->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		own->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		own->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_MIN_RNR_TIMER)
		own->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		own->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		own->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_DEST_QPN)
		own->dest_qp_num = attr->dest_qp_num;
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		own->en_sqd_async_notify = attr->en_sqd_async_notify;
	if (mask & IB_QP_RQ_PSN) {
		own->rq_psn = attr->rq_psn & MRLAB_PSN_MASK;
		qp->rq_psn = own->rq_psn;
	}
	if (mask & IB_QP_SQ_PSN) {
		own->sq_psn = attr->sq_psn & MRLAB_PSN_MASK;
		qp->sq_psn = own->sq_psn;
	}
}

static void mrlab_reset(struct mrlab_qp *qp)
{
	mrlab_queue_clear(&qp->sq);
	mrlab_queue_clear(&qp->rq);
	mrlab_cq_purge(qp->ibqp.send_cq, qp->plate);
	mrlab_cq_purge(qp->ibqp.recv_cq, qp->plate);
	memset(&qp->attr, 0, sizeof(qp->attr));
}

static int mrlab_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
			   struct ib_udata *udata)
{
	struct mrlab_qp *qp = to_mrlab_qp(ibqp);
	enum ib_qp_state old, new;
	int err;

	err = mrlab_check_attr(attr, mask);
	if (err)
		return err;
	/* What is being carried, also to it, must not hold up the end of it. */
	if (mask & IB_QP_STATE &&
	    (attr->qp_state == IB_QPS_ERR || attr->qp_state == IB_QPS_RESET))
		WRITE_ONCE(qp->stop, true);
	mutex_lock(&qp->posting);
	mutex_lock(&qp->engine);
	mutex_lock(&qp->responder);
	WRITE_ONCE(qp->stop, false);
	old = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	new = mask & IB_QP_STATE ? attr->qp_state : old;
	if (old != qp->state ||
	    !ib_modify_qp_is_ok(old, new, ibqp->qp_type, mask)) {
		err = -EINVAL;
		goto out;
	}
	mrlab_store_attr(qp, attr, mask);
	WRITE_ONCE(qp->state, new);
	WRITE_ONCE(qp->waiting, false);
	if (new == IB_QPS_RESET)
		mrlab_reset(qp);
	if (new == IB_QPS_ERR)
		mrlab_flush(qp);
out:
	mutex_unlock(&qp->responder);
	mutex_unlock(&qp->engine);
	mutex_unlock(&qp->posting);
	if (!err && new == IB_QPS_SQD && qp->attr.en_sqd_async_notify)
		mrlab_qp_event(qp, IB_EVENT_SQ_DRAINED);
	/* What was posted in SQD, or while this held the engine; or was stopped. */
	mrlab_engine_run(qp, true);
	return err;
}

static int mrlab_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
			  struct ib_qp_init_attr *init)
{
	struct mrlab_qp *qp = to_mrlab_qp(ibqp);

	/* Enough against modify, and no message is waited for. */
	mutex_lock(&qp->posting);
	*attr = qp->attr;
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->cap = qp->init.cap;
	*init = qp->init;
	mutex_unlock(&qp->posting);
	return 0;
}

const struct ib_device_ops mrlab_qp_ops = {
	.create_qp = mrlab_create_qp,
	.destroy_qp = mrlab_destroy_qp,
	.modify_qp = mrlab_modify_qp,
	.query_qp = mrlab_query_qp,
	INIT_RDMA_OBJ_SIZE(ib_qp, mrlab_qp, ibqp),
};
