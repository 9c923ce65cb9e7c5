// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The observer's boundaries as BPF programs, for hosts without mrscope.ko: each
 * adds the gap since the task's last boundary to the stage that just ended, and
 * enters the next one.  What is not seen here (bpf_capture.cpp) is worked out by
 * the reader.
 *
 * A boundary that one kernel has by another name, or a driver by its own, is
 * attached by that name when the programs are loaded; one without a function
 * stays out.
 */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "mrscope.h"
#include "record.h"
#include "types.h"

char LICENSE[] SEC("license") = "GPL";

#define MAX_ERRNO	4095

enum { REG = 1, DEREG };

/* An operation under way. */
struct frame {
	u64 last;
	u64 flt[2];
	u64 csw[2];
	struct uverbs_attr_bundle *attrs;
	struct ib_device *dev;
	void *sgt;
	u32 during;
	u32 driver_seen;
	struct mrs_bpf_operation op;
};

/*
 * What a task is in.  By the low bits of its tid: finding it takes a few
 * instructions, in the storage of tasks a hundred.  Where two tasks meet, the
 * second one's operation is lost, and counted.
 */
#define SLOTS	4096

static struct task_state {
	u32 tid;		/* whose operations these are; 0: nobody's */
	u32 depth;
	struct frame frames[2];	/* a deregistration may be inside of the other */
} tasks[SLOTS];

/* What a task has done last; overwritten by others of the same slot. */
static struct note {
	u32 ioctl_tid;
	u32 destroy_tid;
	u64 ioctl_ns;		/* an ioctl on a uverbs file */
	u64 destroy_ns;		/* a uobject was destroyed */
	u64 destroy_ioctl_ns;
	void *destroyed;	/* its object */
	u32 destroy_entry;
} notes[SLOTS];

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} events SEC(".maps");

struct mrs_bpf_shared shared SEC(".data.shared") = {};

/* Of the drivers' reg_user_mr: its result is behind them. */
const volatile u32 reg_user_mr_args = 6;

static void lose(void)
{
	__sync_fetch_and_add(&shared.lost, 1);
}

/* ---- the operation that the task is in ---- */

static __always_inline u32 own_tid(void)
{
	return bpf_get_current_task_btf()->pid;
}

/* The slot that the task has taken, or NULL. */
static __always_inline struct task_state *state_of_task(void)
{
	u32 tid = own_tid();
	struct task_state *s = &tasks[tid % SLOTS];

	if (s->tid != tid)
		s = NULL;
	/* The verifier of Linux 6.1 does not know that one test tells another. */
	barrier_var(s);
	return s;
}

/* The same, else a fresh one, or NULL where somebody else is in it. */
static __always_inline struct task_state *take_state(u32 tid)
{
	struct task_state *s = &tasks[tid % SLOTS];

	if (s->tid == tid)
		return s;
	if (__sync_val_compare_and_swap(&s->tid, 0, tid)) {
		lose();
		return NULL;
	}
	s->depth = 0;
	return s;
}

static __always_inline struct note *note_of(u32 tid)
{
	return &notes[tid % SLOTS];
}

static __always_inline struct frame *top(struct task_state *s)
{
	if (!s)
		return NULL;
	return s->depth == 1 ? &s->frames[0] : &s->frames[1];
}

static __always_inline struct frame *during(u32 what)
{
	struct frame *f = top(state_of_task());

	return f && f->during == what ? f : NULL;
}

/* The innermost operation is over. */
static __always_inline void pop(struct task_state *s)
{
	if (!--s->depth)
		s->tid = 0;
}

static __always_inline void advance(struct frame *f, u32 stage, u64 now)
{
	u32 old = f->op.stage;

	if (old < MRS_BPF_STAGES)
		f->op.ns[old] += now - f->last;
	f->last = now;
	f->op.stage = stage;
	f->op.observed |= 1U << stage;
}

static __always_inline void fail(struct frame *f, u64 now)
{
	if (f->op.failed_stage < 0)
		f->op.failed_stage = f->op.stage;
	advance(f, MRSCOPE_REG_UNWIND, now);
}

static __always_inline void copy_comm(char *to, struct task_struct *task)
{
	u64 *words = (u64 *)task->comm;

	((u64 *)to)[0] = words[0];
	((u64 *)to)[1] = words[1];
}

/* memset() would be compiled to twice as many stores. */
static __always_inline void clear(struct mrs_bpf_operation *op)
{
	volatile u64 *words = (volatile u64 *)op;
	u32 i;

#pragma unroll
	for (i = 0; i < MRS_BPF_ZEROED / sizeof(u64); i++)
		words[i] = 0;
}

static __always_inline struct frame *begin(struct task_state *s, u32 op, u32 entry,
					   u32 stage, u64 start)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct frame *f;

	/* Only a deregistration is inside of another: what else is there missed its end. */
	if (s->depth) {
		u32 around = op == MRSCOPE_OP_DEREG && s->frames[0].during == REG;

		if (s->depth > around) {
			lose();
			s->depth = around;
		}
	}
	f = s->depth ? &s->frames[1] : &s->frames[0];
	s->depth++;
	/* The other fields are told by flags, or set when it ends. */
	clear(&f->op);
	f->dev = NULL;
	f->driver_seen = 0;
	f->during = op == MRSCOPE_OP_DEREG ? DEREG : REG;
	f->last = start;
	f->op.start_ns = start;
	f->op.op = op;
	f->op.entry = entry;
	f->op.failed_stage = -1;
	f->op.stage = stage;
	f->op.observed = 1U << stage;
	if (s->depth > 1)
		f->op.flags = MRSCOPE_F_NESTED;
	f->flt[0] = task->min_flt;
	f->flt[1] = task->maj_flt;
	f->csw[0] = task->nvcsw;
	f->csw[1] = task->nivcsw;
	return f;
}

/* The pid that the task has in its own namespace. */
static __always_inline s32 own_pid(struct task_struct *task)
{
	u32 level = task->thread_pid->level;
	s32 nr = task->pid;
	struct pid *pid;

	/* Most are in the initial one. */
	if (!level)
		return nr;
	/* As a number, for nothing may be added to the pointer itself. */
	bpf_core_read(&pid, sizeof(pid), &task->thread_pid);
	bpf_probe_read_kernel(&nr, sizeof(nr),
			      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
				      level * bpf_core_type_size(struct upid));
	return nr;
}

/*
 * A device's number is its place here; its name, which costs more than all else
 * in a record, is told once.
 */
#define DEVICES	16

static struct ib_device *devices[DEVICES];

static __always_inline u32 number_of(struct ib_device *dev)
{
	struct mrs_bpf_event *e;
	u32 i;

	if (!dev)
		return MRS_BPF_NO_DEVICE;
	for (i = 0; i < DEVICES; i++) {
		if (devices[i] == dev)
			return i;
		if (!devices[i] && !__sync_val_compare_and_swap(&devices[i], NULL, dev))
			break;
	}
	if (i == DEVICES)
		return MRS_BPF_NO_DEVICE;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		lose();
		return i;
	}
	e->kind = MRS_BPF_DEVICE_NAME;
	e->pid = i;
	bpf_probe_read_kernel_str(e->text, sizeof(e->text), BPF_CORE_READ(dev, dev.kobj.name));
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return i;
}

static __always_inline void end(struct task_state *s, struct frame *f, bool dereg, s32 ret,
				u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 device = number_of(f->dev), stage = f->op.stage;
	struct mrs_bpf_operation *op;
	struct mrs_bpf_event *e;

	if (stage < MRS_BPF_STAGES)
		f->op.ns[stage] += now - f->last;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		lose();
		pop(s);
		return;
	}
	e->kind = MRS_BPF_OPERATION;
	e->time_ns = now;
	op = &e->operation;
	if (dereg)
		__builtin_memcpy(op, &f->op, MRS_BPF_COPIED_DEREG);
	else
		__builtin_memcpy(op, &f->op, MRS_BPF_COPIED);
	op->ret = ret;
	op->faults_minor = task->min_flt - f->flt[0];
	op->faults_major = task->maj_flt - f->flt[1];
	op->nvcsw = task->nvcsw - f->csw[0];
	op->nivcsw = task->nivcsw - f->csw[1];
	op->tid = task->pid;
	op->tgid = task->tgid;
	op->vtid = own_pid(task);
	op->vtgid = op->tid == op->tgid ? op->vtid : own_pid(task->group_leader);
	op->device = device;
	copy_comm(op->comm, task);
	pop(s);
	/* The reader comes by itself. */
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

static __always_inline bool by_ioctl(struct uverbs_attr_bundle *attrs)
{
	return attrs->attr_present[0];
}

/* ---- registration ---- */

SEC("fentry/ib_uverbs_ioctl")
int BPF_PROG(ioctl)
{
	u32 tid = own_tid();
	struct note *n = note_of(tid);

	n->ioctl_tid = tid;
	n->ioctl_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int root_call(struct uverbs_attr_bundle *attrs, u32 op)
{
	u64 now = bpf_ktime_get_ns();
	u32 tid = own_tid();
	struct task_state *s = take_state(tid);
	struct note *n = note_of(tid);
	u32 entry = by_ioctl(attrs) ? MRSCOPE_ENTRY_IOCTL : MRSCOPE_ENTRY_WRITE;
	struct frame *f;

	if (!s)
		return 0;
	f = begin(s, op, entry, MRSCOPE_REG_UVERBS, now);
	f->attrs = attrs;
	if (entry == MRSCOPE_ENTRY_IOCTL && n->ioctl_tid == tid) {
		f->op.start_ns = n->ioctl_ns;
		f->op.ns[MRSCOPE_REG_SYSCALL] = now - n->ioctl_ns;
		f->op.observed |= 1U << MRSCOPE_REG_SYSCALL;
	}
	return 0;
}

struct request {		/* struct ib_uverbs_reg_mr */
	u64 response;
	u64 start;
	u64 length;
	u64 hca_va;
	u32 pd_handle;
	u32 access_flags;
};

/* The core refused before it called the driver. */
static __always_inline void read_request(struct frame *f)
{
	struct uverbs_attr_bundle *attrs = f->attrs;
	struct ib_ucontext *context = BPF_CORE_READ(attrs, context);
	struct request r;

	if (context)
		f->dev = BPF_CORE_READ(context, device);
	if (f->op.op != MRSCOPE_OP_REG || BPF_CORE_READ(attrs, ucore.inlen) < sizeof(r) ||
	    bpf_probe_read_user(&r, sizeof(r), BPF_CORE_READ(attrs, ucore.inbuf)))
		return;
	f->op.addr = r.start;
	f->op.length = r.length;
	f->op.iova = r.hca_va;
	f->op.access = r.access_flags;
	f->op.flags |= MRSCOPE_F_ADDR | MRSCOPE_F_ACCESS;
}

/* The commit that follows is not worth a program of its own. */
static __always_inline int root_return(s32 ret, bool has_command)
{
	u64 now = bpf_ktime_get_ns();
	struct task_state *s = state_of_task();
	struct frame *f = top(s);

	if (!f || f->during != REG)
		return 0;
	if (ret && !f->driver_seen && has_command)
		read_request(f);
	end(s, f, false, ret, now);
	return 0;
}

SEC("fentry/ib_uverbs_reg_mr")
int BPF_PROG(reg_call, struct uverbs_attr_bundle *attrs)
{
	return root_call(attrs, MRSCOPE_OP_REG);
}

SEC("fexit/ib_uverbs_reg_mr")
int BPF_PROG(reg_return, struct uverbs_attr_bundle *attrs, int ret)
{
	return root_return(ret, true);
}

SEC("fentry/ib_uverbs_rereg_mr")
int BPF_PROG(rereg_call, struct uverbs_attr_bundle *attrs)
{
	return root_call(attrs, MRSCOPE_OP_REREG);
}

SEC("fexit/ib_uverbs_rereg_mr")
int BPF_PROG(rereg_return, struct uverbs_attr_bundle *attrs, int ret)
{
	return root_return(ret, true);
}

SEC("fentry/ib_uverbs_handler_UVERBS_METHOD_REG_MR")
int BPF_PROG(method_call, struct uverbs_attr_bundle *attrs)
{
	return root_call(attrs, MRSCOPE_OP_REG);
}

SEC("fexit/ib_uverbs_handler_UVERBS_METHOD_REG_MR")
int BPF_PROG(method_return, struct uverbs_attr_bundle *attrs, int ret)
{
	return root_return(ret, false);
}

SEC("fentry/ib_uverbs_handler_UVERBS_METHOD_REG_DMABUF_MR")
int BPF_PROG(dmabuf_call, struct uverbs_attr_bundle *attrs)
{
	return root_call(attrs, MRSCOPE_OP_REG_DMABUF);
}

SEC("fexit/ib_uverbs_handler_UVERBS_METHOD_REG_DMABUF_MR")
int BPF_PROG(dmabuf_return, struct uverbs_attr_bundle *attrs, int ret)
{
	return root_return(ret, false);
}

/* reg_user_mr(pd, start, length, virt_addr, access, ...) of a device's driver */
static __always_inline int driver_entry(struct ib_pd *pd, u64 start, u64 length, u64 iova,
					u32 access)
{
	u64 now = bpf_ktime_get_ns();
	struct frame *f = during(REG);

	if (!f || f->driver_seen)
		return 0;
	advance(f, MRSCOPE_REG_PREPARE, now);
	f->driver_seen = 1;
	f->dev = pd->device;
	f->op.addr = start;
	f->op.length = length;
	f->op.iova = iova;
	f->op.access = access;
	f->op.flags |= MRSCOPE_F_ADDR | MRSCOPE_F_ACCESS;
	return 0;
}

/* Its result is a pointer that the kernel knows the type of: reading it is cheap. */
static __always_inline int driver_return(struct ib_mr *mr)
{
	u64 now = bpf_ktime_get_ns();
	struct frame *f = during(REG);

	if (!f || (u64)mr >= (u64)-MAX_ERRNO)
		return 0;
	advance(f, MRSCOPE_REG_PUBLISH, now);
	f->op.lkey = mr->lkey;
	f->op.rkey = mr->rkey;
	f->op.flags |= MRSCOPE_F_LKEY;
	return 0;
}

/* Two loads of fixed places, for no other ones of a context are allowed. */
static __always_inline void *reg_user_mr_result(u64 *ctx)
{
	void *mr;

	if (reg_user_mr_args == 7)
		asm volatile("%0 = *(u64 *)(%1 + 56)" : "=r"(mr) : "r"(ctx));
	else
		asm volatile("%0 = *(u64 *)(%1 + 48)" : "=r"(mr) : "r"(ctx));
	return mr;
}

/* dereg_mr(mr, udata) of a device's driver */
static __always_inline int dereg_driver_entry(void)
{
	u64 now = bpf_ktime_get_ns();
	struct frame *f = during(DEREG);

	if (!f || f->driver_seen)
		return 0;
	advance(f, MRSCOPE_DEREG_INVALIDATE, now);
	f->driver_seen = 1;
	return 0;
}

/* A program is attached to one function alone, and a host has several drivers. */
#define DRIVER(n)								\
	SEC("fentry")								\
	int BPF_PROG(driver_##n, struct ib_pd *pd, u64 start, u64 length, u64 iova,	\
		     int access)						\
	{									\
		return driver_entry(pd, start, length, iova, access);		\
	}									\
	SEC("fexit")								\
	int driver_return_##n(u64 *ctx)						\
	{									\
		return driver_return(reg_user_mr_result(ctx));			\
	}									\
	SEC("fentry")								\
	int BPF_PROG(dereg_driver_##n)						\
	{									\
		return dereg_driver_entry();					\
	}

DRIVER(0)
DRIVER(1)
DRIVER(2)
DRIVER(3)
DRIVER(4)
DRIVER(5)
DRIVER(6)
DRIVER(7)

SEC("fentry")
int BPF_PROG(key)
{
	u64 now = bpf_ktime_get_ns();
	struct frame *f = during(REG);

	if (f && f->op.stage == MRSCOPE_REG_PREPARE)
		advance(f, MRSCOPE_REG_KEY, now);
	return 0;
}

SEC("fentry")
int BPF_PROG(umem)
{
	u64 now = bpf_ktime_get_ns();
	struct frame *f = during(REG);

	if (f)
		advance(f, MRSCOPE_REG_ACCOUNT, now);
	return 0;
}

SEC("fentry/pin_user_pages_fast")
int BPF_PROG(pin_call)
{
	struct frame *f = during(REG);

	if (!f)
		return 0;
	f->op.pin_batches++;
	f->op.flags |= MRSCOPE_F_PIN;
	advance(f, MRSCOPE_REG_PIN, bpf_ktime_get_ns());
	return 0;
}

SEC("fexit/pin_user_pages_fast")
int BPF_PROG(pin_return, unsigned long start, int nr_pages, unsigned int flags, void *pages,
	     int ret)
{
	u64 now = bpf_ktime_get_ns();
	struct frame *f = during(REG);

	if (!f || f->op.stage != MRSCOPE_REG_PIN)
		return 0;
	if (ret < 0) {
		fail(f, now);
		return 0;
	}
	advance(f, MRSCOPE_REG_SG, now);
	f->op.pages += ret;
	f->op.flags |= MRSCOPE_F_UMEM;
	return 0;
}

/* A page fault in the pin may map for a disk that it reads from. */
static __always_inline bool may_map(const struct frame *f)
{
	return f && f->op.stage != MRSCOPE_REG_DMA && f->op.stage != MRSCOPE_REG_PIN &&
	       f->op.stage != MRSCOPE_REG_UNWIND;
}

SEC("fentry/ib_dma_virt_map_sg")
int BPF_PROG(virt_dma_call, struct ib_device *dev, void *sg, int nents)
{
	u64 now = bpf_ktime_get_ns();
	struct frame *f = during(REG);

	if (!may_map(f))
		return 0;
	advance(f, MRSCOPE_REG_DMA, now);
	f->op.sg_entries = nents;
	f->op.flags |= MRSCOPE_F_SG;
	return 0;
}

SEC("fexit/ib_dma_virt_map_sg")
int BPF_PROG(virt_dma_return, struct ib_device *dev, void *sg, int nents, int ret)
{
	u64 now = bpf_ktime_get_ns();
	struct frame *f = during(REG);

	if (!f || f->op.stage != MRSCOPE_REG_DMA || ret <= 0)
		return 0;
	advance(f, MRSCOPE_REG_TABLE, now);
	f->op.dma_entries = ret;
	f->op.flags |= MRSCOPE_F_DMA;
	return 0;
}

SEC("fentry/dma_map_sgtable")
int BPF_PROG(dma_call, void *dev, struct sg_table *sgt)
{
	u64 now = bpf_ktime_get_ns();
	struct frame *f = during(REG);
	struct ib_device *ours;

	if (!may_map(f))
		return 0;
	/* An interrupt may map for another device meanwhile. */
	ours = f->dev;
	if (BPF_CORE_READ(ours, dma_device) != dev)
		return 0;
	advance(f, MRSCOPE_REG_DMA, now);
	f->sgt = sgt;
	f->op.sg_entries = sgt->orig_nents;
	f->op.flags |= MRSCOPE_F_SG;
	return 0;
}

SEC("fexit/dma_map_sgtable")
int BPF_PROG(dma_return, void *dev, struct sg_table *sgt, int dir, unsigned long attrs, int ret)
{
	u64 now = bpf_ktime_get_ns();
	struct frame *f = during(REG);

	if (!f || f->op.stage != MRSCOPE_REG_DMA || f->sgt != sgt)
		return 0;
	/* Not the equal number, which is no pointer to the verifier. */
	barrier_var(sgt);
	f->sgt = NULL;
	if (ret) {
		fail(f, now);
		return 0;
	}
	advance(f, MRSCOPE_REG_TABLE, now);
	f->op.dma_entries = sgt->nents;
	f->op.flags |= MRSCOPE_F_DMA;
	return 0;
}

/* ---- deregistration ---- */

SEC("fentry/uverbs_destroy_uobject")
int BPF_PROG(destroy, struct ib_uobject *uobj, int reason, struct uverbs_attr_bundle *attrs)
{
	u32 tid = own_tid();
	struct note *s = note_of(tid);

	s->destroy_tid = tid;
	s->destroy_ns = bpf_ktime_get_ns();
	s->destroyed = uobj->object;
	s->destroy_ioctl_ns = 0;
	if (reason == VALUE(rdma_remove_reason, RDMA_REMOVE_DESTROY)) {
		s->destroy_entry = MRSCOPE_ENTRY_WRITE;
		if (by_ioctl(attrs)) {
			s->destroy_entry = MRSCOPE_ENTRY_IOCTL;
			if (s->ioctl_tid == tid)
				s->destroy_ioctl_ns = s->ioctl_ns;
		}
	} else if (reason == VALUE(rdma_remove_reason, RDMA_REMOVE_CLOSE)) {
		s->destroy_entry = MRSCOPE_ENTRY_CLEANUP;
	} else if (reason == VALUE(rdma_remove_reason, RDMA_REMOVE_ABORT)) {
		s->destroy_entry = MRSCOPE_ENTRY_ABORT;
	} else {
		s->destroy_entry = MRSCOPE_ENTRY_REMOVE;
	}
	return 0;
}

SEC("fentry/ib_dereg_mr_user")
int BPF_PROG(dereg_call, struct ib_mr *mr)
{
	struct task_state *s;
	struct note *n;
	struct task_struct *owner;
	u32 entry = MRSCOPE_ENTRY_UNKNOWN;
	u32 tid = own_tid();
	struct frame *f;
	u64 start;
	bool noted;

	if ((int)mr->type != VALUE(ib_mr_type, IB_MR_TYPE_USER))
		return 0;
	s = take_state(tid);
	n = note_of(tid);
	if (!s)
		return 0;
	/* As the module does it: a region's uobject may be stale. */
	noted = n->destroy_tid == tid && n->destroyed == mr;
	if (noted) {
		start = n->destroy_ns;
		entry = n->destroy_entry;
	} else {
		start = bpf_ktime_get_ns();
		if (!mr->uobject)
			entry = MRSCOPE_ENTRY_KERNEL;
	}
	n->destroyed = NULL;
	f = begin(s, MRSCOPE_OP_DEREG, entry, MRSCOPE_DEREG_UVERBS, start);
	if (noted && n->destroy_ioctl_ns) {
		f->op.start_ns = n->destroy_ioctl_ns;
		f->op.ns[MRSCOPE_DEREG_SYSCALL] = n->destroy_ns - n->destroy_ioctl_ns;
		f->op.observed |= 1U << MRSCOPE_DEREG_SYSCALL;
	}
	f->dev = mr->device;
	f->op.length = mr->length;
	f->op.iova = mr->iova;
	f->op.lkey = mr->lkey;
	f->op.rkey = mr->rkey;
	f->op.flags |= MRSCOPE_F_LKEY;
	owner = mr->res.task;
	if (owner) {
		f->op.owner_tgid = owner->tgid;
		copy_comm(f->op.owner_comm, owner->group_leader);
		f->op.flags |= MRSCOPE_F_OWNER;
	}
	return 0;
}

SEC("fexit/ib_dereg_mr_user")
int BPF_PROG(dereg_return, struct ib_mr *mr, void *udata, int ret)
{
	u64 now = bpf_ktime_get_ns();
	struct task_state *s = state_of_task();
	struct frame *f = top(s);

	if (!f || f->during != DEREG)
		return 0;
	end(s, f, true, ret, now);
	return 0;
}

SEC("fentry/__ib_umem_release")
int BPF_PROG(release_call, struct ib_device *dev, struct ib_umem *umem)
{
	u64 now = bpf_ktime_get_ns();
	struct frame *f = top(state_of_task());

	if (!f)
		return 0;
	if (f->during == REG && f->op.op == MRSCOPE_OP_REG && f->op.stage != MRSCOPE_REG_UNWIND)
		fail(f, now);
	if (f->during != DEREG)
		return 0;
	f->op.addr = umem->address;
	f->op.length = umem->length;
	f->op.sg_entries = umem->sgt_append.sgt.orig_nents;
	f->op.flags |= MRSCOPE_F_ADDR | MRSCOPE_F_SG;
	/* A software device has nothing to unmap; elsewhere both are one here. */
	advance(f, dev->dma_device ? MRSCOPE_DEREG_UNMAP : MRSCOPE_DEREG_UNPIN, now);
	return 0;
}

SEC("fexit/__ib_umem_release")
int BPF_PROG(release_return)
{
	u64 now = bpf_ktime_get_ns();
	struct frame *f = during(DEREG);

	if (f)
		advance(f, MRSCOPE_DEREG_FREE, now);
	return 0;
}

/* ---- what looking costs ---- */

/*
 * The kernel has functions for trying programs out: it calls all of them, one
 * after another, when asked to run one of these (BPF_PROG_TEST_RUN).
 */
SEC("fentry/bpf_fentry_test1")
int BPF_PROG(cost_begin)
{
	u64 now = bpf_ktime_get_ns();
	struct task_state *s = take_state(own_tid());

	shared.tgid = bpf_get_current_pid_tgid() >> 32;
	if (s)
		begin(s, MRSCOPE_OP_REG, MRSCOPE_ENTRY_UNKNOWN, MRSCOPE_REG_UVERBS, now);
	return 0;
}

static __always_inline int cost_step(u32 stage)
{
	u64 now = bpf_ktime_get_ns();
	struct frame *f = during(REG);

	if (f)
		advance(f, stage, now);
	return 0;
}

SEC("fentry/bpf_fentry_test2")
int BPF_PROG(cost_entry)
{
	return cost_step(MRSCOPE_REG_PREPARE);
}

SEC("fentry/bpf_fentry_test3")
int BPF_PROG(cost_next)
{
	return cost_step(MRSCOPE_REG_ACCOUNT);
}

SEC("fentry/bpf_fentry_test4")
int BPF_PROG(cost_end)
{
	u64 now = bpf_ktime_get_ns();
	struct task_state *s = state_of_task();
	struct frame *f = top(s);

	if (!f)
		return 0;
	shared.begin_ns = f->op.ns[MRSCOPE_REG_UVERBS];
	shared.entry_ns = f->op.ns[MRSCOPE_REG_PREPARE];
	shared.end_ns = now;
	f->op.op = MRS_BPF_OP_COST;
	end(s, f, false, 0, now);
	return 0;
}

SEC("fentry/bpf_fentry_test5")
int BPF_PROG(cost_after)
{
	shared.record_ns = bpf_ktime_get_ns() - shared.end_ns;
	return 0;
}

/* ---- who belongs to whom ---- */

static __always_inline struct mrs_bpf_event *process_event(u32 kind, s32 pid)
{
	struct mrs_bpf_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		lose();
		return NULL;
	}
	e->kind = kind;
	e->pid = pid;
	e->time_ns = bpf_ktime_get_ns();
	return e;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(forked, struct task_struct *parent, struct task_struct *child)
{
	struct mrs_bpf_event *e = process_event(MRS_BPF_FORK, child->pid);

	if (e) {
		e->parent = parent->pid;
		bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	}
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(executed, struct task_struct *task, int old_pid, struct linux_binprm *binprm)
{
	struct mrs_bpf_event *e = process_event(MRS_BPF_EXEC, task->pid);

	if (e) {
		bpf_probe_read_kernel_str(e->text, sizeof(e->text), binprm->filename);
		bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	}
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(exited, struct task_struct *task)
{
	struct mrs_bpf_event *e = process_event(MRS_BPF_EXIT, task->pid);

	if (e)
		bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}
