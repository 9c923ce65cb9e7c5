// SPDX-License-Identifier: GPL-2.0
/*
 * The rules of access: what a key lets a queue pair do, as the InfiniBand
 * specification has them.  What is refused is counted by its reason.
 */
#include "lab.h"
#include "trace.h"

/* Of all rights, those that a peer needs. */
#define MRLAB_REMOTE	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |	\
			 IB_ACCESS_REMOTE_ATOMIC)

void mrlab_refused(struct mrlab_qp *qp, struct mrlab_mr *mr, u32 key,
		   enum mrlab_refusal why)
{
	atomic64_inc(&to_mrlab(qp->ibqp.device)->refused[why]);
	atomic64_inc(&qp->refused);
	if (mr)
		atomic64_inc(&mr->refused);
	trace_mrlab_refused(qp, key, why);
}

static enum mrlab_refusal mrlab_check(struct mrlab_qp *qp, struct mrlab_mr *mr,
				      u64 addr, u64 length, u32 right)
{
	u64 offset = addr - mr->base;

	if (READ_ONCE(mr->pd) != qp->ibqp.pd)
		return MRLAB_OTHER_PD;
	if (READ_ONCE(mr->invalidated))
		return MRLAB_INVALIDATED;
	if (right & MRLAB_REMOTE && !(READ_ONCE(qp->attr.qp_access_flags) & right))
		return MRLAB_QP_ACCESS;
	/* Local reading needs no right. */
	if (right && !(READ_ONCE(mr->access) & right))
		return MRLAB_MR_ACCESS;
	if (length && (offset > mr->length || length > mr->length - offset))
		return MRLAB_BOUNDS;
	return MRLAB_OK;
}

/*
 * The region of a key, with a reference, if the queue pair may do @right (one
 * of enum ib_access_flags, 0 for local reading) with these bytes; else NULL,
 * and that is counted.
 */
struct mrlab_mr *mrlab_access(struct mrlab_qp *qp, u32 key, u64 addr,
			      u64 length, u32 right)
{
	enum mrlab_refusal why;
	struct mrlab_mr *mr;

	mr = mrlab_key_find(&to_mrlab(qp->ibqp.device)->keys, key, &why);
	if (mr) {
		why = mrlab_check(qp, mr, addr, length, right);
		if (why == MRLAB_OK)
			return mr;
	}
	mrlab_refused(qp, mr, key, why);
	if (mr)
		mrlab_mr_put(mr);
	return NULL;
}

/*
 * What a SEND with invalidate asks for.  Real devices allow it for regions of
 * fast registration and memory windows only, which mrlab does not have.
 */
bool mrlab_invalidate(struct mrlab_qp *qp, u32 key)
{
	struct mrlab_mr *mr = mrlab_access(qp, key, 0, 0, 0);
	bool allowed;

	if (!mr)
		return false;
	allowed = READ_ONCE(mr->access) & MRLAB_REMOTE;
	if (allowed)
		WRITE_ONCE(mr->invalidated, true);
	else
		mrlab_refused(qp, mr, key, MRLAB_MR_ACCESS);
	mrlab_mr_put(mr);
	return allowed;
}
