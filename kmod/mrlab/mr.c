// SPDX-License-Identifier: GPL-2.0
/*
 * A registration from beginning to end.  Each line of mrlab_register() is a
 * stage with a file of its own, and its time is told (enum mrlab_stage).
 */
#include <linux/sched.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include "compat.h"
#include "lab.h"
#include "trace.h"

/* What is to be registered, and as what. */
struct mrlab_request {
	u64 start;		/* in the caller's memory, or in the dmabuf */
	u64 length;
	u64 iova;		/* the address that peers and work requests use */
	u32 access;
	int dmabuf;		/* its file descriptor, or -1 */
};

static int mrlab_check(const struct mrlab_request *request)
{
	u64 end;

	if (!request->length || request->length > MRLAB_MAX_MR_BYTES ||
	    check_add_overflow(request->start, request->length, &end) ||
	    end > ULONG_MAX - PAGE_SIZE ||
	    check_add_overflow(request->iova, request->length - 1, &end) ||
	    offset_in_page(request->start ^ request->iova))
		return -EINVAL;
	return 0;
}

static struct mrlab_mr *mrlab_mr_alloc(struct ib_pd *pd,
				       const struct mrlab_request *request)
{
	struct mrlab_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	if (!mr)
		return NULL;
	mr->pd = pd;
	mr->access = request->access;
	mr->start = request->start;
	mr->length = request->length;
	mr->base = request->access & IB_ZERO_BASED ? 0 : request->iova;
	mr->ibmr.device = pd->device;
	mr->ibmr.iova = request->iova;	/* rereg: the core does not set it */
	mr->tgid = task_tgid_nr(current);
	get_task_comm(mr->comm, current);
	init_completion(&mr->unused);
	mr->cost.size = sizeof(mr->cost);
	return mr;
}

/* Memory that the device may use: on demand, of a dmabuf, or pinned. */
static int mrlab_get_memory(struct mrlab_mr *mr, int dmabuf,
			    struct mrlab_clock *clock)
{
	int err;

	if (mr->access & IB_ACCESS_ON_DEMAND)
		return mrlab_odp_get(mr, mr->ibmr.device, mr->start);
	if (dmabuf >= 0) {
		err = mrlab_dmabuf_get(mr, mr->ibmr.device, mr->start, dmabuf);
		mrlab_clock_lap(clock, MRLAB_ATTACH);
		return err;
	}
	return mrlab_pin(mr, mr->ibmr.device, mr->start, clock);
}

static void mrlab_describe(struct mrlab_mr *mr, unsigned long page_size)
{
	mr->ibmr.lkey = mr->key;
	mr->ibmr.rkey = mr->key;
	mr->ibmr.length = mr->length;
	mr->ibmr.page_size = page_size;
	mr->cost.page_shift = mr->table.page_shift;
	mr->cost.levels = mr->table.levels;
	mr->cost.table_entries = mr->table.entries;
	if (!mr->on_demand) {
		mr->cost.sg_entries = mr->umem->sgt_append.sgt.orig_nents;
		mr->cost.dma_entries = mr->umem->sgt_append.sgt.nents;
	}
}

static struct ib_mr *mrlab_register(struct ib_pd *pd,
				    const struct mrlab_request *request,
				    struct ib_udata *udata)
{
	struct mrlab_keys *keys = &to_mrlab(pd->device)->keys;
	struct mrlab_clock clock;
	unsigned long page_size;
	struct mrlab_mr *mr;
	int err;

	mr = mrlab_mr_alloc(pd, request);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mrlab_clock_start(&clock, mr->cost.stage_ns);

	err = mrlab_check(request);
	mrlab_clock_lap(&clock, MRLAB_CHECK);
	if (err)
		goto err_free;

	err = mrlab_get_memory(mr, request->dmabuf, &clock);
	if (err)
		goto err_free;

	err = mrlab_table_page_size(mr, &page_size);
	mrlab_clock_lap(&clock, MRLAB_PAGE_SIZE);
	if (err)
		goto err_memory;

	err = mrlab_table_build(mr, page_size);
	mrlab_clock_lap(&clock, MRLAB_TABLE);
	if (err)
		goto err_memory;

	err = mrlab_key_alloc(keys, &mr->key);
	mrlab_clock_lap(&clock, MRLAB_KEY);
	if (err)
		goto err_memory;

	mrlab_describe(mr, page_size);
	if (mr->on_demand)
		mrlab_odp_ready(mr);
	mrlab_key_publish(keys, mr);
	mrlab_clock_lap(&clock, MRLAB_PUBLISH);
	trace_mrlab_reg_mr(mr, clock.last_ns - clock.begun_ns, 0);

	err = udata ? ib_copy_to_udata(udata, &mr->cost,
				       min(sizeof(mr->cost), udata->outlen)) : 0;
	if (!err)
		return &mr->ibmr;

	mrlab_key_withdraw(keys, mr);
	mrlab_key_free(keys, mr->key);
err_memory:
	mrlab_unpin(mr);	/* first: a notifier may use the table */
	mrlab_table_free(&mr->table);
err_free:
	trace_mrlab_reg_mr(mr, ktime_get_ns() - clock.begun_ns, err);
	kfree_rcu(mr, rcu);
	return ERR_PTR(err);
}

static struct ib_mr *mrlab_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
				       u64 iova, int access, MRLAB_REG_DMAH
				       struct ib_udata *udata)
{
	struct mrlab_request request = {
		.start = start,
		.length = length,
		.iova = iova,
		.access = access,
		.dmabuf = -1,
	};

	if (MRLAB_HAS_DMAH)
		return ERR_PTR(-EOPNOTSUPP);
	return mrlab_register(pd, &request, udata);
}

static struct ib_mr *mrlab_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset,
					      u64 length, u64 iova, int fd,
					      int access, MRLAB_REG_DMAH
					      struct mrlab_op_data *data)
{
	struct mrlab_request request = {
		.start = offset,
		.length = length,
		.iova = iova,
		.access = access,
		.dmabuf = fd,
	};

	if (MRLAB_HAS_DMAH)
		return ERR_PTR(-EOPNOTSUPP);
	if (fd < 0)
		return ERR_PTR(-EBADF);
	if (access & (IB_ACCESS_ON_DEMAND | IB_ZERO_BASED))
		return ERR_PTR(-EINVAL);
	return mrlab_register(pd, &request, mrlab_op_udata(data));
}

/* Can the same memory serve with these rights? */
static bool mrlab_same_memory(const struct mrlab_mr *mr, u32 access)
{
	const u32 kind = IB_ACCESS_ON_DEMAND | IB_ACCESS_HUGETLB | IB_ZERO_BASED;

	return !((mr->access ^ access) & kind) &&
	       (mr->umem->writable || !ib_access_writable(access));
}

/*
 * Other rights or another domain for the same memory are a change in place,
 * and the key stays; all else is a new region, with a new key, in place of
 * which the core deregisters the old one.
 */
static struct ib_mr *mrlab_rereg_user_mr(struct ib_mr *ibmr, int flags,
					 u64 start, u64 length, u64 iova,
					 int access, struct ib_pd *pd,
					 struct ib_udata *udata)
{
	struct mrlab_keys *keys = &to_mrlab(ibmr->device)->keys;
	struct mrlab_mr *mr = to_mrlab_mr(ibmr);
	struct mrlab_request request = {
		.start = start,
		.length = length,
		.iova = iova,
		.access = flags & IB_MR_REREG_ACCESS ? access : mr->access,
		.dmabuf = -1,
	};

	if (!(flags & IB_MR_REREG_TRANS)) {
		if (mrlab_same_memory(mr, request.access)) {
			mrlab_key_withdraw(keys, mr);
			mr->access = request.access;
			mr->pd = pd;
			mr->invalidated = false;
			mrlab_key_publish(keys, mr);
			return NULL;
		}
		if (mr->umem->is_dmabuf)
			return ERR_PTR(-EOPNOTSUPP);
		request.start = mr->start;
		request.length = mr->length;
		request.iova = ibmr->iova;
	}
	return mrlab_register(pd, &request, udata);
}

static int mrlab_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct mrlab_keys *keys = &to_mrlab(ibmr->device)->keys;
	struct mrlab_mr *mr = to_mrlab_mr(ibmr);
	u64 begun = ktime_get_ns();
	u64 withdrawn;

	mrlab_key_withdraw(keys, mr);
	withdrawn = ktime_get_ns();
	mrlab_unpin(mr);
	mrlab_table_free(&mr->table);
	mrlab_key_free(keys, mr->key);
	trace_mrlab_dereg_mr(mr, withdrawn - begun, ktime_get_ns() - begun);
	kfree_rcu(mr, rcu);
	return 0;
}

const struct ib_device_ops mrlab_mr_ops = {
	.reg_user_mr = mrlab_reg_user_mr,
	.reg_user_mr_dmabuf = mrlab_reg_user_mr_dmabuf,
	.rereg_user_mr = mrlab_rereg_user_mr,
	.dereg_mr = mrlab_dereg_mr,
	.advise_mr = mrlab_advise_mr,
};
