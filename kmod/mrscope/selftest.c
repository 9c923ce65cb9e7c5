// SPDX-License-Identifier: GPL-2.0
/*
 * Do probes fire at all, and what does one cost?  Both are found out on
 * functions of our own, with the handlers that real registrations meet.
 */
#include <linux/kernel.h>
#include <linux/string.h>

#include "observer.h"

#define MRS_TRIES	64	/* the shortest counts: others were disturbed */
#define MRS_CALLS	32

struct mrs_cost mrs_cost;
struct task_struct *mrs_calibrating;

/* ---- functions to probe ---- */

static noinline unsigned long mrs_target_umem(const void *dev,
					      unsigned long addr, size_t size,
					      int access)
{
	barrier();
	return addr;
}

/* What a pair costs is told by a key span: begun in one stage, back after it. */
static noinline int mrs_target_span(int n)
{
	barrier();
	return n;
}

static noinline void *mrs_target_root(unsigned int umems, unsigned int spans)
{
	while (umems--)
		mrs_target_umem(mrs_calibration_device(), 0, PAGE_SIZE, 0);
	while (spans--)
		mrs_target_span(1);
	barrier();
	return NULL;
}

static struct mrs_probe mrs_target_probes[] = {
	{ .addr = mrs_target_umem, .on_entry = mrs_umem_entry },
	{ .addr = mrs_target_span, .on_call = mrs_key_call,
	  .on_return = mrs_key_return },
	{ .addr = mrs_target_root, .on_call = mrs_reg_root_call,
	  .on_return = mrs_reg_root_return,
	  .op = MRSCOPE_OP_REG, .entry = MRSCOPE_ENTRY_KERNEL },
};

static struct mrs_probe *mrs_targets[] = {
	&mrs_target_probes[0], &mrs_target_probes[1], &mrs_target_probes[2],
};

static void mrs_targets_disarm(void)
{
	unsigned int i;

	mrs_probes_disarm(mrs_targets, ARRAY_SIZE(mrs_targets));
	for (i = 0; i < ARRAY_SIZE(mrs_targets); i++) {
		free_percpu(mrs_targets[i]->hits);
		mrs_targets[i]->hits = NULL;
	}
}

static int mrs_targets_arm(void)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(mrs_targets); i++) {
		mrs_targets[i]->hits = alloc_percpu(unsigned long);
		if (!mrs_targets[i]->hits)
			err = -ENOMEM;
	}
	if (!err)
		err = mrs_probes_arm(mrs_targets, ARRAY_SIZE(mrs_targets));
	if (err)
		mrs_targets_disarm();
	return err;
}

/* ---- cost ---- */

static u64 mrs_shortest(unsigned int umems, unsigned int spans)
{
	u64 best = U64_MAX;
	unsigned int i;

	for (i = 0; i < MRS_TRIES; i++) {
		u64 begun = ktime_get_mono_fast_ns();

		mrs_target_root(umems, spans);
		best = min(best, ktime_get_mono_fast_ns() - begun);
	}
	return best;
}

struct mrs_timing {
	u64 base;	/* one umem call */
	u64 umems;	/* MRS_CALLS more of them */
	u64 spans;	/* MRS_CALLS pairs beside the one umem call */
};

static void mrs_measure(struct mrs_timing *t)
{
	t->base = mrs_shortest(1, 0);
	t->umems = mrs_shortest(1 + MRS_CALLS, 0);
	t->spans = mrs_shortest(1, MRS_CALLS);
}

static u64 mrs_less(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

/* Measures mrs_cost.  Left at 0 where no probe can be armed. */
void mrs_calibrate(void)
{
	struct mrs_timing bare, armed;
	u64 root;

	lockdep_assert_held(&mrs_lock);
	WRITE_ONCE(mrs_calibrating, current);
	mrs_measure(&bare);
	if (mrs_targets_arm())
		goto out;
	mrs_measure(&armed);
	mrs_targets_disarm();

	mrs_cost.entry_ns = mrs_less(armed.umems - armed.base,
				     bare.umems - bare.base) / MRS_CALLS;
	mrs_cost.pair_ns = mrs_less(armed.spans - armed.base,
				    bare.spans - bare.base) / MRS_CALLS;
	root = mrs_less(armed.base, bare.base);
	mrs_cost.record_ns = mrs_less(root,
				      mrs_cost.entry_ns + mrs_cost.pair_ns);
out:
	WRITE_ONCE(mrs_calibrating, NULL);
}

/* ---- self-test ---- */

int mrs_selftest(char *why, size_t len)
{
	unsigned int i;
	int err;

	mutex_lock(&mrs_lock);
	WRITE_ONCE(mrs_calibrating, current);
	err = mrs_targets_arm();
	if (err) {
		snprintf(why, len, "fail: no probe can be armed (error %d)",
			 err);
		goto out;
	}
	mrs_target_root(1, 1);
	for (i = 0; i < ARRAY_SIZE(mrs_target_probes); i++) {
		if (mrs_probe_hits(&mrs_target_probes[i]) == 1)
			continue;
		snprintf(why, len,
			 "fail: a probe did not fire; are kprobes/enabled and kernel.ftrace_enabled both 1?");
		err = -EIO;
	}
	mrs_targets_disarm();
	if (!err && mrs_boundary_gone(why, len))
		err = -EIO;
	if (!err)
		strscpy(why, "pass", len);
out:
	WRITE_ONCE(mrs_calibrating, NULL);
	mutex_unlock(&mrs_lock);
	return err;
}
