// SPDX-License-Identifier: GPL-2.0
/*
 * Closing a record: what was observed, what did not happen, what could not be
 * told apart; then publishing it.
 */
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/bit_spinlock.h>	/* lacks an include of its own */
#include <rdma/ib_verbs.h>

#include "observer.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* The latest records, for people who read debugfs; behind them a place for the
 * calibration's, which nobody is to find.
 */
#define MRS_RING	64
#define MRS_RING_SLOTS	(MRS_RING + 1)

struct mrs_ring_slot {
	unsigned long lock;		/* bit 0 */
	struct mrs_record rec;		/* seq 0: empty */
};

static struct mrs_ring_slot *mrs_ring;
static atomic64_t mrs_seq = ATOMIC64_INIT(0);

/* What writing the events of a record has cost on this CPU: [0] reg, [1] dereg. */
static DEFINE_PER_CPU(u64 [2], mrs_publish_ns);

struct mrs_filter mrs_filter;
bool mrs_keys;

static const char *const mrs_reg_names[] = { MRSCOPE_REG_STAGE_NAMES };
static const char *const mrs_dereg_names[] = { MRSCOPE_DEREG_STAGE_NAMES };

static_assert(ARRAY_SIZE(mrs_reg_names) == MRSCOPE_REG_STAGES);
static_assert(ARRAY_SIZE(mrs_dereg_names) == MRSCOPE_DEREG_STAGES);

const char *mrs_stage_name(u32 op, u32 stage)
{
	return op == MRSCOPE_OP_DEREG ? mrs_dereg_names[stage] :
					mrs_reg_names[stage];
}

u32 mrs_stage_count(u32 op)
{
	return op == MRSCOPE_OP_DEREG ? (u32)MRSCOPE_DEREG_STAGES :
					(u32)MRSCOPE_REG_STAGES;
}

/* The boundary that a stage begins with. */
static const u8 mrs_reg_begins[] = {
	[MRSCOPE_REG_SYSCALL] = MRS_B_IOCTL,
	[MRSCOPE_REG_UVERBS] = MRS_B_UVERBS,
	[MRSCOPE_REG_PREPARE] = MRS_B_DRIVER,
	[MRSCOPE_REG_KEY] = MRS_B_KEY,
	[MRSCOPE_REG_ACCOUNT] = MRS_B_UMEM,
	[MRSCOPE_REG_PIN] = MRS_B_PIN,
	[MRSCOPE_REG_SG] = MRS_B_SG,
	[MRSCOPE_REG_DMA] = MRS_B_DMA,
	[MRSCOPE_REG_ATTACH] = MRS_B_ATTACH,
	[MRSCOPE_REG_TABLE] = MRS_B_DMA,
	[MRSCOPE_REG_PUBLISH] = MRS_B_FINISH,
};

#define UMEM_STAGES	(BIT(MRSCOPE_REG_ACCOUNT) | BIT(MRSCOPE_REG_PIN) | \
			 BIT(MRSCOPE_REG_SG) | BIT(MRSCOPE_REG_DMA))

/* Seen by every registration that pins; "syscall" only where it was an ioctl. */
#define USUAL_STAGES	((BIT(MRSCOPE_REG_PUBLISH + 1) - 1) & \
			 ~BIT(MRSCOPE_REG_ATTACH))

/* The list of pages is only told from their pin where that is seen. */
static bool mrs_reg_stage_armed(u32 s)
{
	return test_bit(mrs_reg_begins[s], &mrs_armed) &&
	       (s != MRSCOPE_REG_SG || test_bit(MRS_B_PIN, &mrs_armed));
}

static u64 mrs_pages_asked(const struct mrs_record *r)
{
	return ((r->addr & ~PAGE_MASK) + r->length + PAGE_SIZE - 1) >>
	       PAGE_SHIFT;
}

/* Stages that this registration had no need of. */
static u32 mrs_not_needed(const struct mrs_frame *f)
{
	const struct mrs_record *r = &f->rec;
	u32 none = 0;

	if (r->op != MRSCOPE_OP_REG_DMABUF)
		none |= BIT(MRSCOPE_REG_ATTACH);
	if (r->op == MRSCOPE_OP_REG_DMABUF ||
	    (r->flags & MRSCOPE_F_ACCESS && r->access & IB_ACCESS_ON_DEMAND) ||
	    (r->op == MRSCOPE_OP_REREG && f->driver_seen &&
	     !(f->rereg_flags & IB_MR_REREG_TRANS)))
		none |= UMEM_STAGES;
	return none;
}

/*
 * A probe that found no free instance leaves a gap.  Where one boundary tells
 * that another must have been crossed, the gap shows.
 */
static bool mrs_reg_incomplete(const struct mrs_record *r)
{
	u32 expected = BIT(MRSCOPE_REG_PREPARE);
	u32 s;

	if (r->op != MRSCOPE_OP_REREG)
		expected |= BIT(MRSCOPE_REG_PUBLISH);
	if (r->observed & BIT(MRSCOPE_REG_ACCOUNT))
		expected |= UMEM_STAGES;
	else if (r->observed & BIT(MRSCOPE_REG_PIN))	/* a driver that pins itself */
		expected |= UMEM_STAGES & ~BIT(MRSCOPE_REG_ACCOUNT);

	for (s = MRSCOPE_REG_PREPARE; s < MRSCOPE_REG_UNWIND; s++)
		if (expected & ~r->observed & BIT(s) && mrs_reg_stage_armed(s))
			return true;

	return r->flags & MRSCOPE_F_UMEM && r->pages != mrs_pages_asked(r);
}

/*
 * Stages that were not entered are one of three things: not needed, or never
 * reached because of a failure (0), or not told apart, because their boundary
 * is not armed or the driver goes another way (merged into the stage before).
 */
static void mrs_account_reg(struct mrs_frame *f)
{
	struct mrs_record *r = &f->rec;
	bool failed = r->ret != 0;
	u32 none, s;

	/* The usual case, for speed: all that a registration has was seen. */
	if (!failed && (r->observed | BIT(MRSCOPE_REG_SYSCALL)) == USUAL_STAGES &&
	    r->pages == mrs_pages_asked(r)) {
		r->observed |= BIT(MRSCOPE_REG_ATTACH) | BIT(MRSCOPE_REG_UNWIND);
		return;
	}

	if (failed && r->failed_stage < 0)
		r->failed_stage = f->stage;
	if (!failed && mrs_reg_incomplete(r))
		r->flags |= MRSCOPE_F_INCOMPLETE;
	none = mrs_not_needed(f);

	for (s = MRSCOPE_REG_PREPARE; s < MRSCOPE_REG_UNWIND; s++) {
		bool armed = mrs_reg_stage_armed(s);

		if (r->observed & BIT(s))
			continue;
		if (none & BIT(s) ||
		    (failed && armed && s > (u32)r->failed_stage)) {
			r->observed |= BIT(s);
		} else if (s == MRSCOPE_REG_KEY) {
			/* Elsewhere the key's time may be in another stage. */
			if (mrs_device_key_in_prepare(r->dev))
				r->merged |= BIT(s);
		} else {
			r->merged |= BIT(s);
		}
	}

	/* That nothing was pinned is known, too. */
	if (r->observed & BIT(MRSCOPE_REG_PIN))
		r->flags |= MRSCOPE_F_PIN;

	if (r->observed & BIT(MRSCOPE_REG_UNWIND))
		return;
	if (failed)
		r->merged |= BIT(MRSCOPE_REG_UNWIND);
	else
		r->observed |= BIT(MRSCOPE_REG_UNWIND);
}

static void mrs_account_dereg(struct mrs_frame *f)
{
	struct mrs_record *r = &f->rec;
	u32 s;

	/*
	 * Where destroying the uobject was not noted, the time before the root
	 * is the caller's to know, and the part behind it says little alone.
	 */
	if (r->entry == MRSCOPE_ENTRY_UNKNOWN &&
	    r->observed & BIT(MRSCOPE_DEREG_INVALIDATE)) {
		r->start_ns += r->ns[MRSCOPE_DEREG_UVERBS];
		r->total_ns -= r->ns[MRSCOPE_DEREG_UVERBS];
		r->ns[MRSCOPE_DEREG_UVERBS] = 0;
		r->observed &= ~BIT(MRSCOPE_DEREG_UVERBS);
		r->merged |= BIT(MRSCOPE_DEREG_UVERBS);
	}

	if ((!(r->observed & BIT(MRSCOPE_DEREG_INVALIDATE)) &&
	     test_bit(MRS_B_DRIVER, &mrs_armed)) ||
	    (r->observed & BIT(MRSCOPE_DEREG_UNPIN) &&
	     !(r->observed & BIT(MRSCOPE_DEREG_FREE))))
		r->flags |= MRSCOPE_F_INCOMPLETE;

	/* Mapping without the DMA API needs no unmapping. */
	if (!(r->observed & BIT(MRSCOPE_DEREG_UNMAP)) &&
	    r->observed & BIT(MRSCOPE_DEREG_UNPIN))
		r->observed |= BIT(MRSCOPE_DEREG_UNMAP);

	for (s = MRSCOPE_DEREG_INVALIDATE; s < MRSCOPE_DEREG_STAGES; s++)
		if (!(r->observed & BIT(s)))
			r->merged |= BIT(s);
}

static bool mrs_wanted(const struct mrs_record *r)
{
	if (mrs_filter.tgid && mrs_filter.tgid != r->tgid &&
	    mrs_filter.tgid != r->owner_tgid)
		return false;
	if (mrs_filter.min_ns > r->total_ns)
		return false;
	return !mrs_filter.device[0] ||
	       !strcmp(mrs_filter.device, mrs_device_name(r->dev));
}

static void mrs_publish(struct mrs_record *r)
{
	u64 *cost = this_cpu_ptr(&mrs_publish_ns[r->op == MRSCOPE_OP_DEREG]);
	u64 begun = ktime_get_mono_fast_ns();
	u32 s;

	r->probe_cost_ns += *cost;
	r->vtid = task_pid_vnr(current);
	r->vtgid = task_tgid_vnr(current);
	if (!mrs_keys) {
		r->lkey &= ~0xffU;
		r->rkey &= ~0xffU;
	} else {
		r->flags |= MRSCOPE_F_KEYS;
	}

	if (trace_mr_stage_enabled())
		for (s = 0; s < mrs_stage_count(r->op); s++)
			if (r->observed & BIT(s))
				trace_mr_stage(r, s);
	if (r->op == MRSCOPE_OP_DEREG)
		trace_mr_dereg(r);
	else
		trace_mr_reg(r);

	/*
	 * Down at once, up slowly: a first time with cold caches, or an
	 * interrupt now and then, is not the event's cost.
	 */
	begun = ktime_get_mono_fast_ns() - begun;
	if (!*cost || begun < *cost)
		*cost = begun;
	else
		*cost += (begun - *cost) / 16;
}

static void mrs_remember(const struct mrs_record *r, struct mrs_ring_slot *slot)
{
	/* A reader holds the lock while it copies: rather lose than wait. */
	if (test_and_set_bit_lock(0, &slot->lock))
		return;
	slot->rec = *r;
	clear_bit_unlock(0, &slot->lock);
}

static void mrs_scale_gaps(struct mrs_frame *f, u64 now)
{
	struct mrs_record *r = &f->rec;
	u32 scale = mrs_clock_usual_scale();
	u64 total = 0;
	u32 s;

	if (f->anchor.clock)
		scale = mrs_clock_scale(f);
	else if (mrs_record_listened())
		mrs_anchor_take(&f->anchor);	/* not when it began */

	f->gaps[f->stage] += now - f->last;
	for (s = 0; s < MRS_STAGES; s++) {
		r->ns[s] = mul_u64_u32_shr(f->gaps[s], scale, MRS_SCALE_SHIFT);
		total += r->ns[s];
	}
	r->total_ns = total;
	r->slow_ns = mul_u64_u32_shr(f->slow, scale, MRS_SCALE_SHIFT);
	r->start_ns = f->anchor.ns -
		      mul_u64_u32_shr(f->anchor.clock - f->begun, scale,
				      MRS_SCALE_SHIFT);
}

/* The calibration is to cost what closing a usual registration costs. */
static void mrs_pretend_usual(struct mrs_frame *f)
{
	u32 s;

	f->rec.observed = USUAL_STAGES;
	f->rec.pages = mrs_pages_asked(&f->rec);
	for (s = 0; s <= MRSCOPE_REG_PUBLISH; s++)
		if (USUAL_STAGES & BIT(s))
			f->gaps[s] = 1000;
}

/* Does anybody take the events? */
bool mrs_record_listened(void)
{
	return trace_mr_reg_enabled() || trace_mr_dereg_enabled() ||
	       trace_mr_stage_enabled();
}

/* @f is over with @ret: completes its record, counts and publishes it. */
void mrs_record_close(struct mrs_frame *f, s32 ret, u64 now)
{
	struct mrs_record *r = &f->rec;

	if (unlikely(f->calibration))
		mrs_pretend_usual(f);
	mrs_scale_gaps(f, now);
	r->ret = ret;
	r->tid = current->pid;
	r->tgid = current->tgid;
	memcpy(r->comm, current->comm, TASK_COMM_LEN);
	r->comm[TASK_COMM_LEN - 1] = 0;
	r->faults_minor = current->min_flt - f->min_flt;
	r->faults_major = current->maj_flt - f->maj_flt;
	r->nvcsw = current->nvcsw - f->nvcsw;
	r->nivcsw = current->nivcsw - f->nivcsw;
	if (test_bit(MRS_B_SLOW, &mrs_armed))
		r->flags |= MRSCOPE_F_DEEP;
	r->probe_cost_ns = f->n_entry * mrs_cost.entry_ns +
			   f->n_pair * mrs_cost.pair_ns + mrs_cost.record_ns;

	if (r->op == MRSCOPE_OP_DEREG)
		mrs_account_dereg(f);
	else
		mrs_account_reg(f);

	mrs_stats_add(r);
	if (unlikely(f->calibration)) {
		mrs_remember(r, &mrs_ring[MRS_RING]);
		return;
	}

	r->seq = atomic64_inc_return(&mrs_seq);
	if (!mrs_wanted(r))
		return;
	if (f->anchor.clock && mrs_record_listened())
		mrs_publish(r);
	mrs_remember(r, &mrs_ring[r->seq % MRS_RING]);
}

u64 mrs_record_count(void)
{
	return atomic64_read(&mrs_seq);
}

void mrs_record_for_each(void (*show)(const struct mrs_record *r, void *arg),
			 void *arg)
{
	u64 last = mrs_record_count();
	u64 seq = last < MRS_RING ? 1 : last - MRS_RING + 1;
	struct mrs_record *copy;

	copy = kmalloc(sizeof(*copy), GFP_KERNEL);
	if (!copy)
		return;
	for (; seq <= last; seq++) {
		struct mrs_ring_slot *slot = &mrs_ring[seq % MRS_RING];

		/* Handlers only try the lock, so nothing can wait for this. */
		bit_spin_lock(0, &slot->lock);
		*copy = slot->rec;
		bit_spin_unlock(0, &slot->lock);
		if (copy->seq == seq)
			show(copy, arg);
	}
	kfree(copy);
}

void mrs_record_reset(void)
{
	unsigned int i;

	for (i = 0; i < MRS_RING_SLOTS; i++) {
		bit_spin_lock(0, &mrs_ring[i].lock);
		mrs_ring[i].rec.seq = 0;
		bit_spin_unlock(0, &mrs_ring[i].lock);
	}
}

int mrs_record_init(void)
{
	mrs_ring = kcalloc(MRS_RING_SLOTS, sizeof(*mrs_ring), GFP_KERNEL);
	return mrs_ring ? 0 : -ENOMEM;
}

void mrs_record_exit(void)
{
	/* Readers of the trace points may still be inside them. */
	tracepoint_synchronize_unregister();
	kfree(mrs_ring);
}
