// SPDX-License-Identifier: GPL-2.0
/*
 * The boundaries inside a deregistration.  It begins in a system call, in the
 * closing of a file (the exit of a process), in the removal of a device, or in
 * a registration that is undone.
 */
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <rdma/ib_umem.h>
#include <rdma/restrack.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/uverbs_types.h>

#include "observer.h"

/*
 * Destroying a uobject is noted for each CPU, as entering the system call is
 * (context.c): most uobjects are no MR.
 */
struct mrs_destroy_note {
	struct task_struct *task;
	const void *object;
	unsigned long switches;
	u64 time;		/* 0: not known */
	u64 syscall;		/* 0: not known */
	u32 entry;
};

static DEFINE_PER_CPU(struct mrs_destroy_note, mrs_destroy_note);

static u32 mrs_destroy_reason(enum rdma_remove_reason reason,
			      const struct uverbs_attr_bundle *attrs)
{
	switch (reason) {
	case RDMA_REMOVE_DESTROY:
		return mrs_by_ioctl(attrs) ? MRSCOPE_ENTRY_IOCTL :
					     MRSCOPE_ENTRY_WRITE;
	case RDMA_REMOVE_CLOSE:
		return MRSCOPE_ENTRY_CLEANUP;
	case RDMA_REMOVE_ABORT:
		return MRSCOPE_ENTRY_ABORT;
	default:
		return MRSCOPE_ENTRY_REMOVE;
	}
}

static struct mrs_destroy_note *mrs_destroy_mark(const void *object, u32 entry)
{
	struct mrs_destroy_note *n = this_cpu_ptr(&mrs_destroy_note);

	n->task = current;
	n->object = object;
	n->switches = mrs_switches();
	n->time = 0;
	n->syscall = 0;
	n->entry = entry;
	return n;
}

/* uverbs_destroy_uobject(uobj, reason, attrs) */
static void mrs_destroy_entry(struct mrs_probe *p, struct mrs_frame *f,
			      u64 now, struct mrs_args args)
{
	const struct ib_uobject *uobj = (void *)mrs_argument(args, 0);
	struct mrs_destroy_note *n;

	n = mrs_destroy_mark(uobj->object,
			     mrs_destroy_reason(mrs_argument(args, 1),
						(void *)mrs_argument(args, 2)));
	n->time = now;
	if (n->entry == MRSCOPE_ENTRY_IOCTL)
		n->syscall = mrs_syscall_entry();
}

/* A registration has failed with its MR made: it is undone without that call. */
void mrs_dereg_expect_abort(const void *mr)
{
	mrs_destroy_mark(mr, MRSCOPE_ENTRY_ABORT);
}

static void mrs_know_owner(struct mrs_record *r, const struct ib_mr *mr)
{
	const struct task_struct *owner = mr->res.task;

	if (!owner)
		return;
	r->owner_tgid = owner->tgid;
	/* The thread is held by the MR, its leader only while both are alive. */
	rcu_read_lock();
	if (pid_alive(owner))
		owner = owner->group_leader;
	memcpy(r->owner_comm, owner->comm, TASK_COMM_LEN);
	rcu_read_unlock();
	r->owner_comm[TASK_COMM_LEN - 1] = 0;
	r->flags |= MRSCOPE_F_OWNER;
}

static bool mrs_in_registration(void)
{
	const struct mrs_context *ctx = mrs_context_find();

	return ctx && ctx->top->rec.op == MRSCOPE_OP_REG;
}

/* ib_dereg_mr_user(mr, udata) */
static int mrs_dereg_call(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	const struct mrs_destroy_note *n = this_cpu_ptr(&mrs_destroy_note);
	const struct ib_mr *mr = (void *)regs_get_kernel_argument(regs, 0);
	u64 now = mrs_clock(), start = now;
	u32 entry = MRSCOPE_ENTRY_UNKNOWN;
	struct mrs_frame *f;
	bool noted;

	/* MRs that a kernel consumer fills by work requests pin nothing. */
	if (mr->type != IB_MR_TYPE_USER)
		return 1;
	mrs_hit(mrs_probe_of(ri));

	/*
	 * Not by mr->uobject: of a region that replaced another one in a
	 * re-registration, the core leaves the other's there, which is freed.
	 */
	noted = n->task == current && n->switches == mrs_switches() &&
		n->object == mr;
	if (noted)
		entry = n->entry;
	else if (!mr->uobject)
		entry = MRSCOPE_ENTRY_KERNEL;
	else if (mrs_in_registration())
		entry = MRSCOPE_ENTRY_ABORT;	/* not committed */

	noted = noted && n->time;
	if (noted)
		start = n->time;

	f = mrs_frame_begin(MRSCOPE_OP_DEREG, entry, MRSCOPE_DEREG_UVERBS, start);
	if (!f)
		return 1;
	f->n_pair = 1;
	if (noted) {
		f->n_entry = 1;
		if (n->syscall) {
			f->begun = n->syscall;
			f->gaps[MRSCOPE_DEREG_SYSCALL] = n->time - n->syscall;
			f->rec.observed |= BIT(MRSCOPE_DEREG_SYSCALL);
			f->n_entry = 2;
		}
	}

	f->rec.dev = mrs_device_find(mr->device);
	f->rec.purpose = mrs_device_purpose(f->rec.dev);
	f->rec.length = mr->length;
	f->rec.iova = mr->iova;
	f->rec.lkey = mr->lkey;
	f->rec.rkey = mr->rkey;
	f->rec.flags |= MRSCOPE_F_LKEY;
	mrs_know_owner(&f->rec, mr);
	return 0;
}

static int mrs_dereg_return(struct kretprobe_instance *ri,
			    struct pt_regs *regs)
{
	u64 now = mrs_clock();
	struct mrs_context *ctx = mrs_context_find();
	struct mrs_frame *parent;

	if (!ctx || ctx->top->rec.op != MRSCOPE_OP_DEREG)
		return 0;
	/* Undoing a registration whose root had returned: that one failed. */
	parent = ctx->top > ctx->frames ? ctx->top - 1 : NULL;
	mrs_frame_end(ctx, (int)regs_return_value(regs), now);
	if (parent && parent->during == MRS_COMMIT)
		mrs_frame_drop(ctx);
	return 0;
}

/* dereg_mr(mr, udata) */
void mrs_dereg_driver_entry(struct mrs_probe *p, struct mrs_frame *f, u64 now,
			    struct mrs_args args)
{
	if (f->driver_seen)
		return;
	mrs_advance(f, MRSCOPE_DEREG_INVALIDATE, now);
	f->driver_seen = true;
}

#define MRS_PAGES_RELEASE	"__ib_umem_release"

/*
 * __ib_umem_release(dev, umem, dirty) for pages that were pinned, by a
 * registration that fails too, in the middle of it; where the compiler has left
 * none, and for umems of other kinds, the function that gives back the umem.
 */
static int mrs_release_call(struct kretprobe_instance *ri,
			    struct pt_regs *regs)
{
	struct mrs_probe *p = mrs_probe_of(ri);
	struct mrs_context *ctx = mrs_context_find();
	struct mrs_frame *f;
	const struct ib_umem *umem;
	u64 now;

	if (likely(!ctx))
		return 1;
	now = mrs_clock();
	umem = (void *)regs_get_kernel_argument(regs,
		!strcmp(p->symbol, MRS_PAGES_RELEASE));
	if (!umem)
		return 1;
	f = ctx->top;

	if (f->rec.op != MRSCOPE_OP_DEREG) {
		/* What was pinned is given back: it failed. */
		if (f->rec.op == MRSCOPE_OP_REREG || f->during == MRS_COMMIT ||
		    f->stage == MRSCOPE_REG_UNWIND)
			return 1;
		mrs_hit(p);
		f->n_pair++;
		mrs_fail(f, now);
		return 1;
	}

	mrs_hit(p);
	f->n_pair++;
	if (!umem->is_dmabuf) {
		f->rec.addr = umem->address;
		f->rec.length = umem->length;
		f->rec.flags |= MRSCOPE_F_ADDR;
	}
	if (umem->is_dmabuf || umem->is_odp) {
		mrs_advance(f, MRSCOPE_DEREG_UNMAP, now);
		return 0;
	}
	f->rec.pages = ib_umem_num_pages((struct ib_umem *)umem);
	f->rec.sg_entries = umem->sgt_append.sgt.orig_nents;
	f->rec.flags |= MRSCOPE_F_UMEM | MRSCOPE_F_SG;
	mrs_advance(f, mrs_device_real_dma(f->rec.dev) ?
		       MRSCOPE_DEREG_UNMAP : MRSCOPE_DEREG_UNPIN, now);
	return 0;
}

static int mrs_release_return(struct kretprobe_instance *ri,
			      struct pt_regs *regs)
{
	u64 now = mrs_clock();
	struct mrs_frame *f = mrs_dereg_running();

	if (f)
		mrs_advance(f, MRSCOPE_DEREG_FREE, now);
	return 0;
}

/* dma_unmap_sg_attrs(): its return parts unmapping from unpinning */
static int mrs_unmap_call(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct mrs_frame *f = mrs_dereg_running();

	/* Other devices unmap in interrupts, which come at any time. */
	if (likely(!f) || f->stage != MRSCOPE_DEREG_UNMAP || !in_task() ||
	    !mrs_device_maps_by(f->rec.dev,
				(void *)regs_get_kernel_argument(regs, 0)))
		return 1;
	mrs_hit(mrs_probe_of(ri));
	f->n_pair++;
	return 0;
}

static int mrs_unmap_return(struct kretprobe_instance *ri,
			    struct pt_regs *regs)
{
	u64 now = mrs_clock();
	struct mrs_frame *f = mrs_dereg_running();

	if (f)
		mrs_advance(f, MRSCOPE_DEREG_UNPIN, now);
	return 0;
}

struct mrs_probe mrs_dereg_probes[] = {
	{ .boundary = MRS_B_UNMAP, .on_call = mrs_unmap_call,
	  .on_return = mrs_unmap_return, .need = MRS_DEEP_REAL_DMA,
	  .symbols = MRS_SYMBOLS("dma_unmap_sg_attrs") },
	{ .boundary = MRS_B_RELEASE, .on_call = mrs_release_call,
	  .on_return = mrs_release_return,
	  .symbols = MRS_SYMBOLS(MRS_PAGES_RELEASE, "ib_umem_release") },
	{ .boundary = MRS_B_RELEASE, .on_call = mrs_release_call,
	  .on_return = mrs_release_return,
	  .optional = true, .symbols = MRS_SYMBOLS("ib_umem_dmabuf_release") },
	{ .boundary = MRS_B_RELEASE, .on_call = mrs_release_call,
	  .on_return = mrs_release_return,
	  .optional = true, .symbols = MRS_SYMBOLS("ib_umem_odp_release") },
	{ .boundary = MRS_B_DEREG, .on_call = mrs_dereg_call,
	  .on_return = mrs_dereg_return, .op = MRSCOPE_OP_DEREG,
	  .symbols = MRS_SYMBOLS("ib_dereg_mr_user") },
	{ .boundary = MRS_B_DESTROY, .on_entry = mrs_destroy_entry,
	  .symbols = MRS_SYMBOLS("uverbs_destroy_uobject") },
};

const unsigned int mrs_dereg_nprobes = ARRAY_SIZE(mrs_dereg_probes);
