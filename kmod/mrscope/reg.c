// SPDX-License-Identifier: GPL-2.0
/*
 * The boundaries inside a registration: which functions they are, and what is
 * learnt at each.  Handlers run with preemption off and must not sleep.
 */
#include <linux/dma-mapping.h>
#include <linux/scatterlist.h>
#include <linux/uaccess.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/restrack.h>
#include <rdma/uverbs_ioctl.h>

#include "observer.h"

static atomic64_t mrs_outside;	/* umem pins that belong to no registration */

u64 mrs_outside_umems(void)
{
	return atomic64_read(&mrs_outside);
}

/* The ioctl path fills the presence bitmap of its attributes, write does not. */
bool mrs_by_ioctl(const struct uverbs_attr_bundle *attrs)
{
	return !bitmap_empty(attrs->attr_present, UVERBS_API_ATTR_BKEY_LEN);
}

static void mrs_ioctl_entry(struct mrs_probe *p, struct mrs_frame *f, u64 now,
			    struct mrs_args args)
{
	mrs_syscall_mark(now);
}

static void mrs_know_device(struct mrs_frame *f, const struct ib_device *dev)
{
	f->rec.dev = mrs_device_find(dev);
	f->rec.purpose = mrs_device_purpose(f->rec.dev);
}

/* ---- roots ---- */

int mrs_reg_root_call(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct mrs_probe *p = mrs_probe_of(ri);
	u64 now = mrs_clock(), called = 0;
	struct uverbs_attr_bundle *attrs = NULL;
	u32 entry = p->entry;
	struct mrs_frame *f;

	mrs_hit(p);
	if (entry == MRSCOPE_ENTRY_IOCTL) {
		attrs = (void *)regs_get_kernel_argument(regs, 0);
		if (mrs_by_ioctl(attrs))
			called = mrs_syscall_entry();
		else
			entry = MRSCOPE_ENTRY_WRITE;
	}

	f = mrs_frame_begin(p->op, entry, MRSCOPE_REG_UVERBS, now);
	if (!f)
		return 1;
	f->attrs = attrs;
	f->n_pair = 1;
	if (called) {
		f->begun = called;
		f->gaps[MRSCOPE_REG_SYSCALL] = now - called;
		f->rec.observed |= BIT(MRSCOPE_REG_SYSCALL);
		f->n_entry = 1;
	}
	return 0;
}

/*
 * The core refused before it called the driver: what was asked for is still in
 * the caller's buffer.  It may have been paged out; then it stays unknown.
 */
static void mrs_read_request(const struct mrs_probe *p, struct mrs_frame *f)
{
	const struct uverbs_attr_bundle *attrs = f->attrs;
	struct ib_uverbs_reg_mr cmd;

	/* Set once the core has allocated the object. */
	if (attrs->context)
		mrs_know_device(f, attrs->context->device);
	if (f->rec.op != MRSCOPE_OP_REG)
		return;
	if (p->method) {
		/* Its command buffer is not set. */
		if (!mrs_method_request(attrs, &cmd))
			return;
	} else if (attrs->ucore.inlen < sizeof(cmd) ||
		   copy_from_user_nofault(&cmd, attrs->ucore.inbuf,
					  sizeof(cmd))) {
		return;
	}
	f->rec.addr = cmd.start;
	f->rec.length = cmd.length;
	f->rec.iova = cmd.hca_va;
	f->rec.access = cmd.access_flags;
	f->rec.flags |= MRSCOPE_F_ADDR | MRSCOPE_F_ACCESS;
}

int mrs_reg_root_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct mrs_probe *p = mrs_probe_of(ri);
	u64 now = mrs_clock();
	struct mrs_context *ctx = mrs_context_find();
	struct mrs_frame *f;
	long ret;

	if (!ctx)
		return 0;
	f = ctx->top;
	if (f->rec.op != p->op || f->during == MRS_COMMIT)
		return 0;

	if (p->entry == MRSCOPE_ENTRY_KERNEL)
		ret = PTR_ERR_OR_ZERO((void *)regs_return_value(regs));
	else
		ret = (int)regs_return_value(regs);

	if (f->attrs && ret && !f->driver_seen)
		mrs_read_request(p, f);
	f->attrs = NULL;
	if (ret && f->mr && f->rec.op == MRSCOPE_OP_REG)
		mrs_dereg_expect_abort(f->mr);

	if (!ret && f->rec.op != MRSCOPE_OP_REREG &&
	    p->entry != MRSCOPE_ENTRY_KERNEL) {
		if (test_bit(MRS_B_COMMIT, &mrs_armed)) {
			f->during = MRS_COMMIT;
			return 0;
		}
		f->rec.flags |= MRSCOPE_F_NO_COMMIT;
	}
	mrs_frame_end(ctx, ret, now);
	return 0;
}

static void mrs_commit_entry(struct mrs_probe *p, struct mrs_frame *f, u64 now,
			     struct mrs_args args)
{
	mrs_frame_end(mrs_context_find(), 0, now);
}

/* ---- driver ---- */

/* reg_user_mr(pd, start, length, virt_addr, access, ...) */
void mrs_reg_driver_entry(struct mrs_probe *p, struct mrs_frame *f, u64 now,
			  struct mrs_args args)
{
	const struct ib_pd *pd;

	/* A driver may call its own operation inside a re-registration. */
	if (f->driver_seen)
		return;
	mrs_advance(f, MRSCOPE_REG_PREPARE, now);
	f->driver_seen = true;

	pd = (void *)mrs_argument(args, 0);
	mrs_know_device(f, pd->device);
	f->rec.addr = mrs_argument(args, 1);
	f->rec.length = mrs_argument(args, 2);
	f->rec.iova = mrs_argument(args, 3);
	f->rec.access = mrs_argument(args, 4);
	f->rec.flags |= MRSCOPE_F_ADDR | MRSCOPE_F_ACCESS;
}

/* reg_user_mr_dmabuf(pd, offset, length, virt_addr, fd, access, ...) */
void mrs_dmabuf_driver_entry(struct mrs_probe *p, struct mrs_frame *f, u64 now,
			     struct mrs_args args)
{
	const struct ib_pd *pd;

	if (f->driver_seen)
		return;
	mrs_advance(f, MRSCOPE_REG_PREPARE, now);
	f->driver_seen = true;

	pd = (void *)mrs_argument(args, 0);
	mrs_know_device(f, pd->device);
	f->rec.op = MRSCOPE_OP_REG_DMABUF;
	f->rec.length = mrs_argument(args, 2);
	f->rec.iova = mrs_argument(args, 3);
	f->rec.access = mrs_argument(args, 5);
	f->rec.flags |= MRSCOPE_F_ACCESS;
}

/* rereg_user_mr(mr, flags, start, length, virt_addr, access, ...) */
void mrs_rereg_driver_entry(struct mrs_probe *p, struct mrs_frame *f, u64 now,
			    struct mrs_args args)
{
	const struct ib_mr *mr;

	if (f->rec.op != MRSCOPE_OP_REREG || f->driver_seen)
		return;
	mrs_advance(f, MRSCOPE_REG_PREPARE, now);
	f->driver_seen = true;

	mr = (void *)mrs_argument(args, 0);
	mrs_know_device(f, mr->device);
	f->rereg_flags = mrs_argument(args, 1);
	/* Changed in place, an MR keeps its keys; a new one tells its own. */
	f->rec.lkey = mr->lkey;
	f->rec.rkey = mr->rkey;
	f->rec.length = mr->length;
	f->rec.iova = mr->iova;
	f->rec.flags |= MRSCOPE_F_LKEY;
	if (f->rereg_flags & IB_MR_REREG_TRANS) {
		f->rec.addr = mrs_argument(args, 2);
		f->rec.length = mrs_argument(args, 3);
		f->rec.iova = mrs_argument(args, 4);
		f->rec.flags |= MRSCOPE_F_ADDR;
	}
	if (f->rereg_flags & IB_MR_REREG_ACCESS) {
		f->rec.access = mrs_argument(args, 5);
		f->rec.flags |= MRSCOPE_F_ACCESS;
	}
}

/* ---- key: from the allocator's entry to the next boundary, or a span ---- */

void mrs_key_entry(struct mrs_probe *p, struct mrs_frame *f, u64 now,
		   struct mrs_args args)
{
	/* Outside the driver it is another object's index. */
	if (f->stage == MRSCOPE_REG_PREPARE)
		mrs_advance(f, MRSCOPE_REG_KEY, now);
}

int mrs_key_call(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct mrs_frame *f = mrs_reg_running();

	if (!f || !f->driver_seen || f->stage == MRSCOPE_REG_KEY)
		return 1;
	mrs_hit(mrs_probe_of(ri));
	f->n_pair++;
	f->before_key = f->stage;
	mrs_advance(f, MRSCOPE_REG_KEY, mrs_clock());
	return 0;
}

int mrs_key_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct mrs_frame *f = mrs_reg_running();

	if (f && f->stage == MRSCOPE_REG_KEY)
		mrs_advance(f, f->before_key, mrs_clock());
	return 0;
}

/* ---- umem ---- */

/*
 * The last resort where the compiler has left no other: what all ways of
 * pinning a described buffer call.
 */
#define MRS_UMEM_DESC	"ib_umem_get_desc"

/* ib_umem_get(device, addr, size, access), or by MRS_UMEM_DESC */
static void mrs_know_umem(const struct mrs_probe *p, struct mrs_frame *f,
			  struct mrs_args args)
{
	mrs_know_device(f, (void *)mrs_argument(args, 0));
	if (p->symbol && !strcmp(p->symbol, MRS_UMEM_DESC)) {
		mrs_described((void *)mrs_argument(args, 1), &f->rec.addr,
			      &f->rec.length);
		f->rec.access = mrs_argument(args, 2);
	} else {
		f->rec.addr = mrs_argument(args, 1);
		f->rec.length = mrs_argument(args, 2);
		f->rec.access = mrs_argument(args, 3);
	}
	f->rec.flags |= MRSCOPE_F_ADDR | MRSCOPE_F_ACCESS;
}

void mrs_umem_entry(struct mrs_probe *p, struct mrs_frame *f, u64 now,
		    struct mrs_args args)
{
	if (!f || f->during != MRS_REG) {
		atomic64_inc(&mrs_outside);
		return;
	}
	f->n_entry++;
	mrs_advance(f, MRSCOPE_REG_ACCOUNT, now);
	if (!f->driver_seen)
		mrs_know_umem(p, f, args);
}

static int mrs_attach_call(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct mrs_frame *f = mrs_reg_running();

	/* ib_umem_dmabuf_get_pinned() calls ib_umem_dmabuf_get(). */
	if (!f || f->stage == MRSCOPE_REG_ATTACH)
		return 1;
	mrs_hit(mrs_probe_of(ri));
	f->n_pair++;
	mrs_advance(f, MRSCOPE_REG_ATTACH, mrs_clock());
	return 0;
}

static int mrs_attach_return(struct kretprobe_instance *ri,
			     struct pt_regs *regs)
{
	struct mrs_frame *f = mrs_reg_running();
	u64 now = mrs_clock();

	if (!f || f->stage != MRSCOPE_REG_ATTACH)
		return 0;
	if (IS_ERR((void *)regs_return_value(regs)))
		mrs_fail(f, now);
	else
		mrs_advance(f, MRSCOPE_REG_TABLE, now);
	return 0;
}

/* ---- pin ---- */

/* A batch; what is pinned goes into the scatter list, or is released. */
static void mrs_pin_entry(struct mrs_probe *p, struct mrs_frame *f, u64 now,
			  struct mrs_args args)
{
	f->rec.pin_batches++;
	f->rec.flags |= MRSCOPE_F_PIN;
	mrs_advance(f, MRSCOPE_REG_PIN, now);
}

/* sg_alloc_append_table_from_pages(append, pages, n_pages, ...) */
static void mrs_sg_entry(struct mrs_probe *p, struct mrs_frame *f, u64 now,
			 struct mrs_args args)
{
	if (f->stage != MRSCOPE_REG_PIN)
		return;
	mrs_advance(f, MRSCOPE_REG_SG, now);
	f->rec.pages += (unsigned int)mrs_argument(args, 2);
	f->rec.flags |= MRSCOPE_F_UMEM;
}

static int mrs_slow_call(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct mrs_frame *f = mrs_reg_running();

	if (!f || f->stage != MRSCOPE_REG_PIN)
		return 1;
	mrs_hit(mrs_probe_of(ri));
	f->n_pair++;
	f->rec.slow_calls++;
	f->slow_entered = mrs_clock();
	return 0;
}

static int mrs_slow_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	u64 now = mrs_clock();
	struct mrs_frame *f = mrs_reg_running();

	if (f && f->slow_entered) {
		f->slow += now - f->slow_entered;
		f->slow_entered = 0;
	}
	return 0;
}

static void mrs_migrate_entry(struct mrs_probe *p, struct mrs_frame *f, u64 now,
			      struct mrs_args args)
{
	if (f->stage == MRSCOPE_REG_PIN)
		f->rec.migrations++;
}

/* ---- DMA mapping ---- */

/*
 * A page fault in the pin may read from a disk, and reclaim write to one: their
 * mappings are none of ours.
 */
static bool mrs_dma_is_ours(const struct mrs_frame *f)
{
	/* Where nothing tells that the pin is over, the mapping does. */
	if (f && f->stage == MRSCOPE_REG_PIN)
		return !test_bit(MRS_B_SG, &mrs_armed);
	return f && f->stage != MRSCOPE_REG_DMA &&
	       f->stage != MRSCOPE_REG_UNWIND;
}

/* int dma_map_sgtable(dev, sgt, dir, attrs): 0 or a negative errno */
static int mrs_dma_call(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct mrs_frame *f = mrs_reg_running();
	struct sg_table *sgt;

	if (likely(!mrs_dma_is_ours(f)) || !in_task() ||
	    !mrs_device_maps_by(f->rec.dev,
				(void *)regs_get_kernel_argument(regs, 0)))
		return 1;
	mrs_hit(mrs_probe_of(ri));
	f->n_pair++;
	mrs_advance(f, MRSCOPE_REG_DMA, mrs_clock());
	sgt = (void *)regs_get_kernel_argument(regs, 1);
	f->sgt = sgt;
	f->rec.sg_entries = sgt->orig_nents;
	f->rec.flags |= MRSCOPE_F_SG;
	return 0;
}

static int mrs_dma_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	u64 now = mrs_clock();
	struct mrs_frame *f = mrs_reg_running();

	if (!f || f->stage != MRSCOPE_REG_DMA || !f->sgt)
		return 0;
	if ((int)regs_return_value(regs)) {
		mrs_fail(f, now);
	} else {
		mrs_advance(f, MRSCOPE_REG_TABLE, now);
		f->rec.dma_entries = ((struct sg_table *)f->sgt)->nents;
		f->rec.flags |= MRSCOPE_F_DMA;
	}
	f->sgt = NULL;
	return 0;
}

/*
 * int ib_dma_virt_map_sg(dev, sg, nents): entries mapped, 0 on failure.  It does
 * next to nothing, so that its return is only worth a probe where the driver
 * has no function in which its table begins.
 */
static void mrs_virt_dma_entry(struct mrs_probe *p, struct mrs_frame *f,
			       u64 now, struct mrs_args args)
{
	if (!mrs_dma_is_ours(f))
		return;
	mrs_advance(f, MRSCOPE_REG_DMA, now);
	f->rec.sg_entries = mrs_argument(args, 2);
	f->rec.flags |= MRSCOPE_F_SG;
}

static void mrs_virt_dma_done(struct mrs_frame *f, u64 now)
{
	mrs_advance(f, MRSCOPE_REG_TABLE, now);
	/* All or none are mapped. */
	f->rec.dma_entries = f->rec.sg_entries;
	f->rec.flags |= MRSCOPE_F_DMA;
}

static int mrs_virt_dma_call(struct kretprobe_instance *ri,
			     struct pt_regs *regs)
{
	struct mrs_frame *f = mrs_reg_running();

	/* The entry's probe may come before this one or after it. */
	if (!f || (f->stage != MRSCOPE_REG_DMA && !mrs_dma_is_ours(f)))
		return 1;
	mrs_hit(mrs_probe_of(ri));
	f->n_pair++;
	return 0;
}

static int mrs_virt_dma_return(struct kretprobe_instance *ri,
			       struct pt_regs *regs)
{
	u64 now = mrs_clock();
	struct mrs_frame *f = mrs_reg_running();

	if (f && f->stage == MRSCOPE_REG_DMA && (int)regs_return_value(regs) > 0)
		mrs_virt_dma_done(f, now);
	return 0;
}

/* What a driver calls first when the memory has been mapped. */
void mrs_table_entry(struct mrs_probe *p, struct mrs_frame *f, u64 now,
		     struct mrs_args args)
{
	if (f->stage == MRSCOPE_REG_DMA)
		mrs_virt_dma_done(f, now);
}

/* ---- the rest of the driver ---- */

static int mrs_page_size_call(struct kretprobe_instance *ri,
			      struct pt_regs *regs)
{
	struct mrs_frame *f = mrs_reg_running();

	if (!f)
		return 1;
	mrs_hit(mrs_probe_of(ri));
	f->n_pair++;
	return 0;
}

static int mrs_page_size_return(struct kretprobe_instance *ri,
				struct pt_regs *regs)
{
	struct mrs_frame *f = mrs_reg_running();

	if (f)
		f->rec.page_size = regs_return_value(regs);
	return 0;
}

/*
 * rdma_restrack_new(res, type): the core has the finished MR in its hands.
 * Its lkey and rkey are set, iova and length too.
 */
static void mrs_finish_entry(struct mrs_probe *p, struct mrs_frame *f, u64 now,
			     struct mrs_args args)
{
	struct rdma_restrack_entry *res;
	const struct ib_mr *mr;

	if (mrs_argument(args, 1) != RDMA_RESTRACK_MR)
		return;
	mrs_advance(f, MRSCOPE_REG_PUBLISH, now);

	res = (void *)mrs_argument(args, 0);
	mr = container_of(res, struct ib_mr, res);
	f->mr = mr;
	f->rec.lkey = mr->lkey;
	f->rec.rkey = mr->rkey;
	f->rec.flags |= MRSCOPE_F_LKEY;
	if (!f->rec.page_size)
		f->rec.page_size = mr->page_size;
	if (!f->rec.dev)
		mrs_know_device(f, mr->device);
}

/* Inner boundaries first: the last one armed completes a record. */
struct mrs_probe mrs_reg_probes[] = {
	{ .boundary = MRS_B_COMMIT, .on_entry = mrs_commit_entry, .during = MRS_COMMIT,
	  .symbols = MRS_SYMBOLS("rdma_alloc_commit_uobject") },
	{ .boundary = MRS_B_FINISH, .on_entry = mrs_finish_entry, .during = MRS_REG,
	  .symbols = MRS_SYMBOLS("rdma_restrack_new") },
	{ .boundary = MRS_B_PAGE_SIZE, .on_call = mrs_page_size_call,
	  .on_return = mrs_page_size_return,
	  .symbols = MRS_SYMBOLS("ib_umem_find_best_pgsz") },
	{ .boundary = MRS_B_DMA, .on_entry = mrs_virt_dma_entry, .during = MRS_REG,
	  .symbols = MRS_SYMBOLS("ib_dma_virt_map_sg") },
	{ .boundary = MRS_B_DMA, .on_call = mrs_virt_dma_call,
	  .on_return = mrs_virt_dma_return, .need = MRS_VIRT_DMA_RETURN,
	  .symbols = MRS_SYMBOLS("ib_dma_virt_map_sg") },
	{ .boundary = MRS_B_DMA, .on_call = mrs_dma_call,
	  .on_return = mrs_dma_return, .need = MRS_REAL_DMA,
	  .symbols = MRS_SYMBOLS("dma_map_sgtable") },
	{ .boundary = MRS_B_MIGRATE, .on_entry = mrs_migrate_entry, .during = MRS_REG,
	  .need = MRS_DEEP, .symbols = MRS_SYMBOLS("migrate_pages") },
	{ .boundary = MRS_B_SLOW, .on_call = mrs_slow_call,
	  .on_return = mrs_slow_return, .need = MRS_DEEP,
	  .symbols = MRS_SYMBOLS("__gup_longterm_locked",
			     "__gup_longterm_locked.isra.0",
			     "__gup_longterm_locked.constprop.0",
			     "__gup_longterm_locked.part.0") },
	{ .boundary = MRS_B_SG, .on_entry = mrs_sg_entry, .during = MRS_REG,
	  .symbols = MRS_SYMBOLS("sg_alloc_append_table_from_pages") },
	{ .boundary = MRS_B_PIN, .on_entry = mrs_pin_entry, .during = MRS_REG,
	  .symbols = MRS_SYMBOLS("pin_user_pages_fast") },
	{ .boundary = MRS_B_ATTACH, .on_call = mrs_attach_call,
	  .on_return = mrs_attach_return,
	  .symbols = MRS_SYMBOLS("ib_umem_dmabuf_get_pinned") },
	{ .boundary = MRS_B_ATTACH, .on_call = mrs_attach_call,
	  .on_return = mrs_attach_return, .optional = true,
	  .symbols = MRS_SYMBOLS("ib_umem_dmabuf_get_pinned_with_dma_device") },
	{ .boundary = MRS_B_ATTACH, .on_call = mrs_attach_call,
	  .on_return = mrs_attach_return, .optional = true,
	  .symbols = MRS_SYMBOLS("ib_umem_dmabuf_get_pinned_revocable_and_lock") },
	{ .boundary = MRS_B_ATTACH, .on_call = mrs_attach_call,
	  .on_return = mrs_attach_return,
	  .symbols = MRS_SYMBOLS("ib_umem_dmabuf_get") },
	{ .boundary = MRS_B_UMEM, .on_entry = mrs_umem_entry,
	  .symbols = MRS_SYMBOLS("ib_umem_get", "__ib_umem_get_va",
			     "__ib_umem_get_va.isra.0",
			     "__ib_umem_get_va.constprop.0",
			     MRS_UMEM_DESC) },
	{ .boundary = MRS_B_UVERBS, .on_call = mrs_reg_root_call,
	  .on_return = mrs_reg_root_return,
	  .op = MRSCOPE_OP_REG, .entry = MRSCOPE_ENTRY_IOCTL,
	  .symbols = MRS_SYMBOLS("ib_uverbs_reg_mr") },
	{ .boundary = MRS_B_UVERBS, .on_call = mrs_reg_root_call,
	  .on_return = mrs_reg_root_return,
	  .op = MRSCOPE_OP_REREG, .entry = MRSCOPE_ENTRY_IOCTL,
	  .symbols = MRS_SYMBOLS("ib_uverbs_rereg_mr") },
	{ .boundary = MRS_B_UVERBS, .on_call = mrs_reg_root_call,
	  .on_return = mrs_reg_root_return,
	  .op = MRSCOPE_OP_REG_DMABUF, .entry = MRSCOPE_ENTRY_IOCTL,
	  .method = true,
	  .symbols = MRS_SYMBOLS("ib_uverbs_handler_UVERBS_METHOD_REG_DMABUF_MR") },
	{ .boundary = MRS_B_UVERBS, .on_call = mrs_reg_root_call,
	  .on_return = mrs_reg_root_return,
	  .op = MRSCOPE_OP_REG, .entry = MRSCOPE_ENTRY_IOCTL,
	  .method = true, .optional = true,
	  .symbols = MRS_SYMBOLS("ib_uverbs_handler_UVERBS_METHOD_REG_MR") },
	{ .boundary = MRS_B_UVERBS, .on_call = mrs_reg_root_call,
	  .on_return = mrs_reg_root_return,
	  .op = MRSCOPE_OP_REG, .entry = MRSCOPE_ENTRY_KERNEL,
	  .symbols = MRS_SYMBOLS("ib_reg_user_mr") },
	{ .boundary = MRS_B_IOCTL, .on_entry = mrs_ioctl_entry,
	  .symbols = MRS_SYMBOLS("ib_uverbs_ioctl") },
};

const unsigned int mrs_reg_nprobes = ARRAY_SIZE(mrs_reg_probes);
