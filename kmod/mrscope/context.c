// SPDX-License-Identifier: GPL-2.0
/*
 * Who is in the middle of what: a small stack of operations for each task.
 *
 * The table is preallocated, because handlers may not sleep.  A task's slot
 * lies within a short window behind its hash.  Only the task itself takes and
 * releases its slot, always in process context, so that a look-up of one's own
 * slot needs no lock: the answer cannot change under the reader.
 */
#include <linux/hash.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "observer.h"

#define MRS_SLOT_BITS	10
#define MRS_SLOTS	BIT(MRS_SLOT_BITS)
#define MRS_WINDOW	8

static struct task_struct *mrs_owners[MRS_SLOTS + MRS_WINDOW];
static struct mrs_context *mrs_contexts;
static atomic64_t mrs_lost = ATOMIC64_INIT(0);

/*
 * Entering ib_uverbs_ioctl() is noted for each CPU, not each task: most system
 * calls are no registration, and their return is not worth a probe.  The note
 * is this task's present system call only if the task has not been switched
 * out since, for then it has not left this CPU either, and a later entry would
 * have overwritten the note.
 */
struct mrs_note {
	struct task_struct *task;
	unsigned long switches;
	u64 time;
};

static DEFINE_PER_CPU(struct mrs_note, mrs_note);

struct mrs_context *mrs_context_find(void)
{
	unsigned int base = hash_ptr(current, MRS_SLOT_BITS);
	unsigned int i;

	for (i = base; i < base + MRS_WINDOW; i++)
		if (READ_ONCE(mrs_owners[i]) == current)
			return &mrs_contexts[i];
	return NULL;
}

/* The task's context, or a fresh one for it, or NULL where there is no room. */
static struct mrs_context *mrs_context_get(void)
{
	unsigned int base = hash_ptr(current, MRS_SLOT_BITS);
	unsigned int i, free = 0;

	for (i = base + MRS_WINDOW; i-- > base;) {
		struct task_struct *owner = READ_ONCE(mrs_owners[i]);

		if (owner == current)
			return &mrs_contexts[i];
		if (!owner)
			free = i + 1;
	}
	for (i = free; i && i <= base + MRS_WINDOW; i++) {
		if (!cmpxchg(&mrs_owners[i - 1], NULL, current)) {
			mrs_contexts[i - 1].depth = 0;
			return &mrs_contexts[i - 1];
		}
	}
	return NULL;
}

static void mrs_context_release(struct mrs_context *ctx)
{
	/* The next owner must not see this one's depth. */
	smp_store_release(&mrs_owners[ctx - mrs_contexts], NULL);
}

/* Forgets the innermost operation; it will have no record. */
void mrs_frame_drop(struct mrs_context *ctx)
{
	if (!mrs_frame_top(ctx)->calibration)
		atomic64_inc(&mrs_lost);
	if (!--ctx->depth)
		mrs_context_release(ctx);
}

/**
 * mrs_frame_begin - a task enters an operation
 * @op: enum mrscope_op
 * @entry: enum mrscope_entry
 * @stage: the stage that begins now
 * @now: when, by mrs_clock()
 *
 * Return: the new innermost operation, or NULL (counted as lost).
 */
struct mrs_frame *mrs_frame_begin(u32 op, u32 entry, u32 stage, u64 now)
{
	struct mrs_context *ctx = mrs_context_get();
	struct mrs_frame *f;

	/*
	 * A registration whose root succeeded, but whose commit never came:
	 * the core undid it without another word, or the commit was missed.
	 */
	if (ctx && ctx->depth && op != MRSCOPE_OP_DEREG &&
	    mrs_frame_top(ctx)->await_commit) {
		mrs_frame_drop(ctx);
		ctx = mrs_context_get();
	}
	if (!ctx || ctx->depth == MRS_DEPTH) {
		atomic64_inc(&mrs_lost);
		return NULL;
	}

	f = &ctx->frames[ctx->depth++];
	memset(f, 0, offsetof(struct mrs_frame, rec.ns));
	mrs_anchor_take(&f->anchor);
	f->begun = now;
	f->last = now;
	f->rec.op = op;
	f->rec.entry = entry;
	f->rec.purpose = MRSCOPE_PURPOSE_UNKNOWN;
	f->rec.failed_stage = -1;
	f->rec.observed = BIT(stage);
	if (ctx->depth > 1)
		f->rec.flags |= MRSCOPE_F_NESTED;
	f->stage = stage;
	f->min_flt = current->min_flt;
	f->maj_flt = current->maj_flt;
	f->nvcsw = current->nvcsw;
	f->nivcsw = current->nivcsw;
	if (unlikely(READ_ONCE(mrs_calibrating) == current)) {
		f->calibration = true;
		f->driver_seen = true;
		f->rec.dev = mrs_device_find(mrs_calibration_device());
	}
	return f;
}

/* The innermost operation is over: closes its record and forgets it. */
void mrs_frame_end(struct mrs_context *ctx, s32 ret, u64 now)
{
	mrs_record_close(mrs_frame_top(ctx), ret, now);
	if (!--ctx->depth)
		mrs_context_release(ctx);
}

unsigned int mrs_context_in_flight(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(mrs_owners); i++)
		n += !!READ_ONCE(mrs_owners[i]);
	return n;
}

unsigned int mrs_context_capacity(void)
{
	return ARRAY_SIZE(mrs_owners);
}

/* Operations that were seen to begin, or not even that, and have no record. */
u64 mrs_context_lost(void)
{
	return atomic64_read(&mrs_lost);
}

/* Forgets all operations.  No handler runs: all probes are unarmed. */
void mrs_context_reset(void)
{
	unsigned int i;
	int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(&mrs_note, cpu), 0, sizeof(mrs_note));

	for (i = 0; i < ARRAY_SIZE(mrs_owners); i++) {
		if (!mrs_owners[i])
			continue;
		atomic64_add(mrs_contexts[i].depth, &mrs_lost);
		mrs_owners[i] = NULL;
	}
}

int mrs_context_init(void)
{
	mrs_clock_init();
	mrs_contexts = kvcalloc(ARRAY_SIZE(mrs_owners), sizeof(*mrs_contexts),
				GFP_KERNEL);
	return mrs_contexts ? 0 : -ENOMEM;
}

void mrs_context_exit(void)
{
	kvfree(mrs_contexts);
}

void mrs_syscall_mark(u64 now)
{
	struct mrs_note *n = this_cpu_ptr(&mrs_note);

	n->task = current;
	n->switches = mrs_switches();
	n->time = now;
}

u64 mrs_syscall_entry(void)
{
	struct mrs_note *n = this_cpu_ptr(&mrs_note);

	return n->task == current && n->switches == mrs_switches() ? n->time : 0;
}
