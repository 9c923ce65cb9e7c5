// SPDX-License-Identifier: GPL-2.0
/*
 * Who is in the middle of what: a small stack of operations for each task.
 *
 * The table is preallocated, because handlers may not sleep.  A task's slot
 * lies within a short window behind its hash.  Only the task itself takes and
 * releases its slot, always in process context, so that a look-up of one's own
 * slot needs no lock: the answer cannot change under the reader.
 */
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "observer.h"

struct mrs_context mrs_contexts[MRS_SLOTS + MRS_WINDOW];
static struct mrs_frame *mrs_frames;
/* How many contexts are not in the slot of their hash. */
atomic_t mrs_displaced = ATOMIC_INIT(0);
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

/* The look-up's second part. */
struct mrs_context *mrs_context_find_displaced(struct mrs_context *home)
{
	struct mrs_context *ctx;

	for (ctx = home + 1; ctx < home + MRS_WINDOW; ctx++)
		if (READ_ONCE(ctx->task) == current)
			return ctx;
	return NULL;
}

/* The task's context, or a fresh one for it, or NULL where there is no room. */
static struct mrs_context *mrs_context_get(void)
{
	struct mrs_context *ctx = mrs_context_find();
	struct mrs_context *home = mrs_context_home();

	if (ctx)
		return ctx;
	for (ctx = home; ctx < home + MRS_WINDOW; ctx++) {
		if (READ_ONCE(ctx->task) || cmpxchg(&ctx->task, NULL, current))
			continue;
		if (ctx != home)
			atomic_inc(&mrs_displaced);
		return ctx;
	}
	return NULL;
}

/* The innermost operation is forgotten, and with the last one the context. */
static void mrs_frame_pop(struct mrs_context *ctx)
{
	if (ctx->top != ctx->frames) {
		ctx->top--;
		return;
	}
	ctx->top = NULL;
	if (unlikely(ctx != mrs_context_home()))
		atomic_dec(&mrs_displaced);
	/* The next owner must not see what was this one's. */
	smp_store_release(&ctx->task, NULL);
}

/* Forgets the innermost operation; it will have no record. */
void mrs_frame_drop(struct mrs_context *ctx)
{
	if (!ctx->top->calibration)
		atomic64_inc(&mrs_lost);
	mrs_frame_pop(ctx);
}

/* What is not set when the record is closed; by words, which is the shortest. */
#define MRS_CLEARED	offsetof(struct mrs_frame, rec.ns)

static_assert(MRS_CLEARED % sizeof(u64) == 0);

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
	if (ctx && ctx->top && op != MRSCOPE_OP_DEREG &&
	    ctx->top->during == MRS_COMMIT) {
		mrs_frame_drop(ctx);
		ctx = mrs_context_get();
	}
	if (!ctx || ctx->top == &ctx->frames[MRS_DEPTH - 1]) {
		atomic64_inc(&mrs_lost);
		return NULL;
	}

	f = ctx->top ? ctx->top + 1 : ctx->frames;
	memset64((u64 *)f, 0, MRS_CLEARED / sizeof(u64));
	f->calibration = READ_ONCE(mrs_calibrating) == current;
	if (mrs_record_listened() || f->calibration)
		mrs_anchor_take(&f->anchor);
	f->begun = now;
	f->last = now;
	f->rec.op = op;
	f->rec.entry = entry;
	f->rec.purpose = MRSCOPE_PURPOSE_UNKNOWN;
	f->rec.failed_stage = -1;
	f->rec.observed = BIT(stage);
	if (f > ctx->frames)
		f->rec.flags |= MRSCOPE_F_NESTED;
	f->during = op == MRSCOPE_OP_DEREG ? MRS_DEREG : MRS_REG;
	f->stage = stage;
	f->min_flt = current->min_flt;
	f->maj_flt = current->maj_flt;
	f->nvcsw = current->nvcsw;
	f->nivcsw = current->nivcsw;
	if (unlikely(f->calibration)) {
		f->driver_seen = true;
		f->rec.dev = mrs_device_find(mrs_calibration_device());
	}
	ctx->top = f;
	return f;
}

/* The innermost operation is over: closes its record and forgets it. */
void mrs_frame_end(struct mrs_context *ctx, s32 ret, u64 now)
{
	mrs_record_close(ctx->top, ret, now);
	mrs_frame_pop(ctx);
}

unsigned int mrs_context_in_flight(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(mrs_contexts); i++)
		n += !!READ_ONCE(mrs_contexts[i].task);
	return n;
}

unsigned int mrs_context_capacity(void)
{
	return ARRAY_SIZE(mrs_contexts);
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

	for (i = 0; i < ARRAY_SIZE(mrs_contexts); i++) {
		struct mrs_context *ctx = &mrs_contexts[i];

		if (!ctx->task)
			continue;
		atomic64_add(ctx->top + 1 - ctx->frames, &mrs_lost);
		ctx->top = NULL;
		ctx->task = NULL;
	}
	atomic_set(&mrs_displaced, 0);
}

int mrs_context_init(void)
{
	unsigned int i;

	mrs_clock_init();
	mrs_frames = kvcalloc(ARRAY_SIZE(mrs_contexts) * MRS_DEPTH,
			      sizeof(*mrs_frames), GFP_KERNEL);
	if (!mrs_frames)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(mrs_contexts); i++)
		mrs_contexts[i].frames = &mrs_frames[i * MRS_DEPTH];
	return 0;
}

void mrs_context_exit(void)
{
	kvfree(mrs_frames);
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
