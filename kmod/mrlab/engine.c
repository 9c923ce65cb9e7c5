// SPDX-License-Identifier: GPL-2.0
/*
 * The engine: it takes the requests of a queue pair one after the other, does
 * what they ask for, and completes them on both sides, as the hardware of an
 * HCA would.  Both queue pairs are on this device.  It runs in whoever posts,
 * or in a worker: after a wait, for what is large, or when the poster is to
 * die.  Its time is counted apart.
 */
#include <linux/sched/signal.h>
#include "lab.h"

/* What a poster carries itself; the rest of its requests is a worker's. */
#define MRLAB_POSTER_BYTES	SZ_1M

/* How a request ends. */
enum mrlab_end {
	MRLAB_END_DONE,
	MRLAB_END_RETRY,	/* nobody answers: after the timeout */
	MRLAB_END_NOT_READY,	/* no receive is posted: after the peer's delay */
	MRLAB_END_STOPPED,	/* the state has changed meanwhile */
	MRLAB_END_FAILED,	/* with a status, on one side or both */
};

struct mrlab_outcome {
	enum mrlab_end end;
	enum ib_wc_status status;	/* at the requester */
	u32 byte_len;
	enum ib_event_type event;	/* at the responder, where it failed */
	bool responder_failed;
};

static struct mrlab_outcome mrlab_done(u32 byte_len)
{
	return (struct mrlab_outcome){ .end = MRLAB_END_DONE,
				       .byte_len = byte_len };
}

static struct mrlab_outcome mrlab_ended(enum mrlab_end end)
{
	return (struct mrlab_outcome){ .end = end };
}

static struct mrlab_outcome mrlab_failed(enum ib_wc_status status)
{
	return (struct mrlab_outcome){ .end = MRLAB_END_FAILED,
				       .status = status };
}

/* The responder sends a NAK, and goes to the error state itself. */
static struct mrlab_outcome mrlab_nak(enum ib_wc_status status,
				      enum ib_event_type event)
{
	return (struct mrlab_outcome){ .end = MRLAB_END_FAILED,
				       .status = status, .event = event,
				       .responder_failed = true };
}

/* ---- completions ---- */

static enum ib_wc_opcode mrlab_send_opcode(enum ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return IB_WC_RDMA_WRITE;
	case IB_WR_RDMA_READ:
		return IB_WC_RDMA_READ;
	case IB_WR_ATOMIC_CMP_AND_SWP:
		return IB_WC_COMP_SWAP;
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return IB_WC_FETCH_ADD;
	default:
		return IB_WC_SEND;
	}
}

/* Pop the oldest request, and complete it where that is wanted. */
static void mrlab_complete_send(struct mrlab_qp *qp, enum ib_wc_status status,
				u32 byte_len)
{
	const struct mrlab_wqe *wqe = mrlab_queue_head(&qp->sq);
	bool signaled = wqe->send_flags & IB_SEND_SIGNALED ||
			qp->init.sq_sig_type == IB_SIGNAL_ALL_WR;
	struct ib_wc wc = {
		.wr_id = wqe->wr_id,
		.status = status,
		.opcode = mrlab_send_opcode(wqe->opcode),
		.byte_len = byte_len,
		.qp = qp->plate,
	};

	mrlab_queue_pop(&qp->sq);
	if ((signaled || status != IB_WC_SUCCESS) &&
	    !mrlab_cq_add(qp->ibqp.send_cq, &wc, false))
		WRITE_ONCE(qp->state, IB_QPS_ERR);
}

/* Pop the oldest receive of @qp, and complete it with what the peer sent. */
static void mrlab_complete_recv(struct mrlab_qp *qp, enum ib_wc_status status,
				const struct mrlab_qp *peer,
				const struct mrlab_wqe *wqe)
{
	struct ib_wc wc = {
		.wr_id = mrlab_queue_head(&qp->rq)->wr_id,
		.status = status,
		.opcode = IB_WC_RECV,
		.qp = qp->plate,
		.port_num = 1,
	};

	if (wqe) {
		wc.byte_len = wqe->length;
		wc.src_qp = peer->ibqp.qp_num;
		wc.slid = MRLAB_LID;
		if (wqe->opcode == IB_WR_RDMA_WRITE_WITH_IMM)
			wc.opcode = IB_WC_RECV_RDMA_WITH_IMM;
		if (wqe->opcode == IB_WR_SEND_WITH_INV) {
			wc.wc_flags = IB_WC_WITH_INVALIDATE;
			wc.ex.invalidate_rkey = wqe->ex.invalidate_rkey;
		} else if (wqe->opcode != IB_WR_SEND) {
			wc.wc_flags = IB_WC_WITH_IMM;
			wc.ex.imm_data = wqe->ex.imm_data;
		}
	}
	mrlab_queue_pop(&qp->rq);
	if (!mrlab_cq_add(qp->ibqp.recv_cq, &wc,
			  wqe && wqe->send_flags & IB_SEND_SOLICITED))
		WRITE_ONCE(qp->state, IB_QPS_ERR);
}

/* Both queues, with the engine and the responder held. */
void mrlab_flush(struct mrlab_qp *qp)
{
	while (mrlab_queue_head(&qp->sq))
		mrlab_complete_send(qp, IB_WC_WR_FLUSH_ERR, 0);
	while (mrlab_queue_head(&qp->rq))
		mrlab_complete_recv(qp, IB_WC_WR_FLUSH_ERR, NULL, NULL);
}

/* ---- messages ---- */

static void mrlab_message_put(struct mrlab_message *message)
{
	while (message->count) {
		struct mrlab_mr *mr = message->segment[--message->count].mr;

		if (mr)
			mrlab_mr_put(mr);
	}
	message->length = 0;
}

static void mrlab_message_add(struct mrlab_message *message, struct mrlab_mr *mr,
			      u32 key, u64 addr, u32 length)
{
	message->segment[message->count++] = (struct mrlab_segment){
		.mr = mr,
		.key = key,
		.addr = addr,
		.length = length,
	};
	message->length += length;
}

/* What the device has in hand: inlined bytes, or the word of an atomic. */
static void mrlab_message_inline(struct mrlab_message *message, const void *data,
				 u32 length)
{
	mrlab_message_add(message, NULL, 0, (uintptr_t)data, length);
}

/* The pieces of a request, by their keys; false where one is refused. */
static bool mrlab_message_local(struct mrlab_message *message,
				struct mrlab_qp *qp, const struct mrlab_wqe *wqe,
				u32 right)
{
	u32 i;

	if (wqe->inlined) {
		mrlab_message_inline(message, wqe->data, wqe->length);
		return true;
	}
	for (i = 0; i < wqe->nsge; i++) {
		const struct ib_sge *sge = &wqe->sge[i];
		struct mrlab_mr *mr;

		if (!sge->length)
			continue;
		mr = mrlab_access(qp, sge->lkey, sge->addr, sge->length, right);
		if (!mr)
			return false;
		mrlab_message_add(message, mr, sge->lkey, sge->addr, sge->length);
	}
	return true;
}

/* What a request names at the peer, by the peer's key. */
static bool mrlab_message_remote(struct mrlab_message *message,
				 struct mrlab_qp *peer,
				 const struct mrlab_wqe *wqe, u32 length,
				 u32 right)
{
	struct mrlab_mr *mr;

	if (!length)
		return true;	/* the key does not count */
	mr = mrlab_access(peer, wqe->rkey, wqe->remote_addr, length, right);
	if (!mr)
		return false;
	mrlab_message_add(message, mr, wqe->rkey, wqe->remote_addr, length);
	return true;
}

/* ---- the requests ---- */

/* @remote: what the peer's memory not being accessible is, at the requester. */
static struct mrlab_outcome mrlab_carry(struct mrlab_qp *qp,
					const struct mrlab_message *to,
					const struct mrlab_message *from,
					u32 length, enum ib_wc_status remote)
{
	const struct mrlab_message *culprit;

	switch (mrlab_copy(qp, to, from, length, &culprit)) {
	case 0:
		return mrlab_done(0);
	case -ECANCELED:
		return mrlab_ended(MRLAB_END_STOPPED);
	case -EPIPE:
		return mrlab_ended(MRLAB_END_RETRY);
	case -EFAULT:
		if (culprit == &qp->here)
			return mrlab_failed(IB_WC_LOC_PROT_ERR);
		return mrlab_nak(remote, IB_EVENT_QP_ACCESS_ERR);
	default:
		return mrlab_failed(IB_WC_FATAL_ERR);
	}
}

/* Into the oldest receive of the peer. */
static struct mrlab_outcome mrlab_do_send(struct mrlab_qp *qp,
					  struct mrlab_qp *peer,
					  const struct mrlab_wqe *wqe)
{
	const struct mrlab_wqe *recv = mrlab_queue_head(&peer->rq);
	struct mrlab_outcome outcome;

	if (!mrlab_message_local(&qp->here, qp, wqe, 0))
		return mrlab_failed(IB_WC_LOC_PROT_ERR);
	if (!recv)
		return mrlab_ended(MRLAB_END_NOT_READY);
	if (!mrlab_message_local(&qp->there, peer, recv, IB_ACCESS_LOCAL_WRITE)) {
		mrlab_complete_recv(peer, IB_WC_LOC_PROT_ERR, NULL, NULL);
		return mrlab_nak(IB_WC_REM_OP_ERR, 0);
	}
	if (wqe->length > qp->there.length) {
		mrlab_complete_recv(peer, IB_WC_LOC_LEN_ERR, NULL, NULL);
		return mrlab_nak(IB_WC_REM_INV_REQ_ERR, 0);
	}
	outcome = mrlab_carry(qp, &qp->there, &qp->here, wqe->length,
			      IB_WC_REM_OP_ERR);
	if (outcome.responder_failed) {
		mrlab_complete_recv(peer, IB_WC_LOC_PROT_ERR, NULL, NULL);
		outcome.event = 0;
	}
	if (outcome.end != MRLAB_END_DONE)
		return outcome;
	if (wqe->opcode == IB_WR_SEND_WITH_INV &&
	    !mrlab_invalidate(peer, wqe->ex.invalidate_rkey)) {
		mrlab_complete_recv(peer, IB_WC_LOC_PROT_ERR, NULL, NULL);
		return mrlab_nak(IB_WC_REM_ACCESS_ERR, 0);
	}
	mrlab_complete_recv(peer, IB_WC_SUCCESS, qp, wqe);
	return outcome;
}

static struct mrlab_outcome mrlab_do_write(struct mrlab_qp *qp,
					   struct mrlab_qp *peer,
					   const struct mrlab_wqe *wqe)
{
	bool with_imm = wqe->opcode == IB_WR_RDMA_WRITE_WITH_IMM;
	struct mrlab_outcome outcome;

	if (!mrlab_message_local(&qp->here, qp, wqe, 0))
		return mrlab_failed(IB_WC_LOC_PROT_ERR);
	if (!mrlab_message_remote(&qp->there, peer, wqe, wqe->length,
				  IB_ACCESS_REMOTE_WRITE))
		return mrlab_nak(IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
	if (with_imm && !mrlab_queue_head(&peer->rq))
		return mrlab_ended(MRLAB_END_NOT_READY);
	outcome = mrlab_carry(qp, &qp->there, &qp->here, wqe->length,
			      IB_WC_REM_ACCESS_ERR);
	if (outcome.end == MRLAB_END_DONE && with_imm)
		mrlab_complete_recv(peer, IB_WC_SUCCESS, qp, wqe);
	return outcome;
}

static struct mrlab_outcome mrlab_do_read(struct mrlab_qp *qp,
					  struct mrlab_qp *peer,
					  const struct mrlab_wqe *wqe)
{
	struct mrlab_outcome outcome;

	if (!mrlab_message_local(&qp->here, qp, wqe, IB_ACCESS_LOCAL_WRITE))
		return mrlab_failed(IB_WC_LOC_PROT_ERR);
	if (!peer->attr.max_dest_rd_atomic)
		return mrlab_nak(IB_WC_REM_INV_REQ_ERR, IB_EVENT_QP_REQ_ERR);
	if (!mrlab_message_remote(&qp->there, peer, wqe, wqe->length,
				  IB_ACCESS_REMOTE_READ))
		return mrlab_nak(IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
	outcome = mrlab_carry(qp, &qp->here, &qp->there, wqe->length,
			      IB_WC_REM_ACCESS_ERR);
	outcome.byte_len = wqe->length;
	return outcome;
}

static struct mrlab_outcome mrlab_do_atomic(struct mrlab_qp *qp,
					    struct mrlab_qp *peer,
					    const struct mrlab_wqe *wqe)
{
	struct mrlab_outcome outcome;
	u64 original;
	int err;

	if (wqe->length < sizeof(original))
		return mrlab_failed(IB_WC_LOC_LEN_ERR);
	if (!mrlab_message_local(&qp->here, qp, wqe, IB_ACCESS_LOCAL_WRITE))
		return mrlab_failed(IB_WC_LOC_PROT_ERR);
	if (!IS_ALIGNED(wqe->remote_addr, sizeof(original))) {
		mrlab_refused(peer, NULL, wqe->rkey, MRLAB_ALIGNMENT);
		return mrlab_nak(IB_WC_REM_INV_REQ_ERR, IB_EVENT_QP_REQ_ERR);
	}
	if (!peer->attr.max_dest_rd_atomic)
		return mrlab_nak(IB_WC_REM_INV_REQ_ERR, IB_EVENT_QP_REQ_ERR);
	if (!mrlab_message_remote(&qp->there, peer, wqe, sizeof(original),
				  IB_ACCESS_REMOTE_ATOMIC))
		return mrlab_nak(IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
	err = mrlab_atomic(qp, &qp->there.segment[0], wqe, &original);
	if (err == -EINVAL)
		return mrlab_nak(IB_WC_REM_INV_REQ_ERR, IB_EVENT_QP_REQ_ERR);
	if (err)
		return mrlab_nak(IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
	mrlab_message_put(&qp->there);
	mrlab_message_inline(&qp->there, &original, sizeof(original));
	outcome = mrlab_carry(qp, &qp->here, &qp->there, sizeof(original),
			      IB_WC_REM_ACCESS_ERR);
	outcome.byte_len = sizeof(original);
	return outcome;
}

static struct mrlab_outcome mrlab_do(struct mrlab_qp *qp, struct mrlab_qp *peer,
				     const struct mrlab_wqe *wqe)
{
	switch (wqe->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return mrlab_do_write(qp, peer, wqe);
	case IB_WR_RDMA_READ:
		return mrlab_do_read(qp, peer, wqe);
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return mrlab_do_atomic(qp, peer, wqe);
	default:
		return mrlab_do_send(qp, peer, wqe);
	}
}

/* ---- the connection ---- */

/* The queue pair that this one is connected to, if it would answer. */
static bool mrlab_connected(const struct mrlab_qp *qp, const struct mrlab_qp *peer)
{
	return mrlab_qp_responds(peer) &&
	       peer->ibqp.qp_type == qp->ibqp.qp_type &&
	       peer->attr.dest_qp_num == qp->ibqp.qp_num &&
	       peer->rq_psn == qp->sq_psn &&
	       rdma_ah_get_dlid(&qp->attr.ah_attr) == MRLAB_LID;
}

/* Packet numbers go on with each packet of a message that arrived. */
static void mrlab_count_packets(struct mrlab_qp *qp, struct mrlab_qp *peer,
				u32 length)
{
	u32 mtu = ib_mtu_enum_to_int(qp->attr.path_mtu);
	u32 packets = max_t(u32, DIV_ROUND_UP(length, mtu), 1);

	qp->sq_psn = (qp->sq_psn + packets) & MRLAB_PSN_MASK;
	peer->rq_psn = qp->sq_psn;
}

/*
 * A responder that refused has failed; it is flushed by its own engine, now and
 * not when a retry of its own is due.
 */
static void mrlab_fail_responder(struct mrlab_dev *dev, struct mrlab_qp *peer,
				 enum ib_event_type event)
{
	WRITE_ONCE(peer->state, IB_QPS_ERR);
	if (event)
		mrlab_qp_event(peer, event);
	mod_delayed_work(dev->wq, &peer->work, 0);
}

/* What is unreliable loses a message that the peer does not take. */
static struct mrlab_outcome mrlab_unreliable(struct mrlab_outcome outcome)
{
	bool lost = outcome.end == MRLAB_END_RETRY ||
		    outcome.end == MRLAB_END_NOT_READY ||
		    outcome.responder_failed;

	return lost ? mrlab_done(0) : outcome;
}

static struct mrlab_outcome mrlab_try(struct mrlab_dev *dev, struct mrlab_qp *qp,
				      const struct mrlab_wqe *wqe)
{
	struct mrlab_outcome outcome = mrlab_ended(MRLAB_END_RETRY);
	bool reliable = qp->ibqp.qp_type == IB_QPT_RC;
	struct mrlab_qp *peer;

	peer = mrlab_qp_get(dev, qp->attr.dest_qp_num);
	if (peer) {
		mutex_lock(&peer->responder);
		if (mrlab_connected(qp, peer)) {
			qp->peer = peer;
			outcome = mrlab_do(qp, peer, wqe);
			if (outcome.end == MRLAB_END_DONE || !reliable)
				mrlab_count_packets(qp, peer, wqe->length);
			if (outcome.end == MRLAB_END_NOT_READY)
				qp->peer_rnr_timer = peer->attr.min_rnr_timer;
			if (outcome.responder_failed && reliable)
				mrlab_fail_responder(dev, peer, outcome.event);
		}
		mutex_unlock(&peer->responder);
		qp->peer = NULL;
		mrlab_message_put(&qp->here);
		mrlab_message_put(&qp->there);
		mrlab_qp_put(peer);
	}
	return reliable ? outcome : mrlab_unreliable(outcome);
}

/* ---- retries ---- */

/* The delays that a responder can ask for, in units of 10 us, by their code. */
static const u16 mrlab_rnr_delays[] = {
	65536 - 1, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
	16384, 24576, 32768, 49152,
};

#define MRLAB_FOREVER	7	/* as rnr_retry */

static unsigned long mrlab_timeout(const struct mrlab_qp *qp)
{
	/* 4.096 us, doubled that often. */
	return nsecs_to_jiffies(4096ULL << qp->attr.timeout) + 1;
}

/* False where it was tried often enough. */
static bool mrlab_again(struct mrlab_dev *dev, struct mrlab_qp *qp,
			struct mrlab_wqe *wqe, enum mrlab_end end)
{
	unsigned long delay;

	if (end == MRLAB_END_NOT_READY) {
		if (qp->attr.rnr_retry != MRLAB_FOREVER &&
		    wqe->rnr_tries++ >= qp->attr.rnr_retry)
			return false;
		atomic64_inc(&dev->engine.rnr_waits);
		delay = usecs_to_jiffies(10 * mrlab_rnr_delays[qp->peer_rnr_timer]);
	} else {
		/* Without a timeout it waits for good. */
		if (qp->attr.timeout && wqe->tries++ >= qp->attr.retry_cnt)
			return false;
		atomic64_inc(&dev->engine.retries);
		delay = qp->attr.timeout ? mrlab_timeout(qp) : HZ;
	}
	WRITE_ONCE(qp->waiting, true);
	mod_delayed_work(dev->wq, &qp->work, delay);
	return true;
}

/* ---- the loop ---- */

/* One request; false where there is no going on for now. */
static bool mrlab_step(struct mrlab_dev *dev, struct mrlab_qp *qp,
		       struct mrlab_wqe *wqe)
{
	struct mrlab_outcome outcome = mrlab_try(dev, qp, wqe);

	switch (outcome.end) {
	case MRLAB_END_DONE:
		atomic64_inc(&dev->engine.requests[wqe->opcode]);
		atomic64_add(wqe->length, &dev->engine.bytes);
		mrlab_complete_send(qp, IB_WC_SUCCESS, outcome.byte_len);
		return true;
	case MRLAB_END_STOPPED:
		return false;
	case MRLAB_END_RETRY:
	case MRLAB_END_NOT_READY:
		if (mrlab_again(dev, qp, wqe, outcome.end))
			return false;
		outcome.status = outcome.end == MRLAB_END_RETRY ?
			IB_WC_RETRY_EXC_ERR : IB_WC_RNR_RETRY_EXC_ERR;
		break;
	case MRLAB_END_FAILED:
		break;
	}
	/* What is unreliable goes on receiving. */
	WRITE_ONCE(qp->state, qp->ibqp.qp_type == IB_QPT_RC ? IB_QPS_ERR :
							      IB_QPS_SQE);
	mrlab_complete_send(qp, outcome.status, 0);
	return true;
}

static bool mrlab_has_work(const struct mrlab_qp *qp)
{
	switch (READ_ONCE(qp->state)) {
	case IB_QPS_RTS:
		return mrlab_queue_count(&qp->sq) && !READ_ONCE(qp->waiting) &&
		       !READ_ONCE(qp->stop);
	case IB_QPS_SQE:
		return mrlab_queue_count(&qp->sq);
	case IB_QPS_ERR:
		return mrlab_queue_count(&qp->sq) || mrlab_queue_count(&qp->rq);
	default:
		return false;
	}
}

/* With the engine held; false where a worker is to go on. */
static bool mrlab_drain(struct mrlab_dev *dev, struct mrlab_qp *qp, bool posted)
{
	u64 bytes = 0;

	while (mrlab_has_work(qp)) {
		struct mrlab_wqe *wqe = mrlab_queue_head(&qp->sq);

		switch (READ_ONCE(qp->state)) {
		case IB_QPS_ERR:
			mutex_lock(&qp->responder);
			mrlab_flush(qp);
			mutex_unlock(&qp->responder);
			break;
		case IB_QPS_SQE:
			mrlab_complete_send(qp, IB_WC_WR_FLUSH_ERR, 0);
			break;
		default:
			bytes += wqe->length;
			if (posted && (bytes > MRLAB_POSTER_BYTES ||
				       fatal_signal_pending(current)))
				return false;
			if (!mrlab_step(dev, qp, wqe))
				return true;
		}
		cond_resched();
	}
	return true;
}

/* Carry on with what is posted, unless somebody does. */
void mrlab_engine_run(struct mrlab_qp *qp, bool posted)
{
	struct mrlab_dev *dev = to_mrlab(qp->ibqp.device);
	u64 begun = ktime_get_ns();
	bool drained;

	do {
		/* Pairs with the one below: who posts gets it, or is seen. */
		smp_mb();
		if (!mutex_trylock(&qp->engine))
			return;
		drained = mrlab_drain(dev, qp, posted);
		mutex_unlock(&qp->engine);
		if (!drained)
			mod_delayed_work(dev->wq, &qp->work, 0);
		/* Pairs with the one above. */
		smp_mb();
	} while (drained && mrlab_has_work(qp));
	atomic64_add(ktime_get_ns() - begun, &dev->engine.busy_ns);
}

void mrlab_engine_work(struct work_struct *work)
{
	struct mrlab_qp *qp = container_of(to_delayed_work(work),
					   struct mrlab_qp, work);

	WRITE_ONCE(qp->waiting, false);
	mrlab_engine_run(qp, false);
}
