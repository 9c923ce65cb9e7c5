// SPDX-License-Identifier: GPL-2.0
/*
 * From mrs_clock() to ns of CLOCK_MONOTONIC.
 *
 * Reading both clocks takes a while, and how long is not known exactly.  Over a
 * long operation that does not matter: it has a scale of its own, that of the
 * moment.  A short one would have a false scale, on all of its stages; it takes
 * the rate that its CPU has seen over the last second or more.
 */
#include <linux/delay.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>

#include "observer.h"

bool mrs_cycles = true;
module_param_named(cycles, mrs_cycles, bool, 0400);
MODULE_PARM_DESC(cycles, "stamp by the cycle counter where it is stable (default: yes)");

u64 mrs_anchor_width;		/* clock units that reading both may take */

struct mrs_rate {
	struct mrs_anchor since;
	u32 scale;
};

static DEFINE_PER_CPU(struct mrs_rate, mrs_rates);

static u32 mrs_scale_between(const struct mrs_anchor *begin,
			     const struct mrs_anchor *end)
{
	return div64_u64((end->ns - begin->ns) << MRS_SCALE_SHIFT,
			 end->clock - begin->clock);
}

/* Longer would overflow, and the machine may have slept meanwhile. */
#define MRS_RATE_MAX_NS	(3600 * NSEC_PER_SEC)

static u32 mrs_clock_rate(const struct mrs_anchor *now)
{
	struct mrs_rate *r = this_cpu_ptr(&mrs_rates);
	u64 ns = now->ns - r->since.ns;
	u32 scale;

	if (likely(ns < NSEC_PER_SEC))
		return r->scale;
	if (ns < MRS_RATE_MAX_NS && now->clock > r->since.clock) {
		scale = mrs_scale_between(&r->since, now);
		/* The counter may have been set anew while the machine slept. */
		if (scale - r->scale + r->scale / 64 < r->scale / 32)
			r->scale = scale;
	}
	r->since = *now;
	return r->scale;
}

/* ns to a unit of mrs_clock(), shifted, as it was last known. */
u32 mrs_clock_usual_scale(void)
{
	return mrs_cycles ? this_cpu_read(mrs_rates.scale) :
			    BIT(MRS_SCALE_SHIFT);
}

/* The same for @f that ends, and has an anchor. */
u32 mrs_clock_scale(const struct mrs_frame *f)
{
	struct mrs_anchor end;
	u64 passed;

	if (!mrs_cycles)
		return BIT(MRS_SCALE_SHIFT);
	mrs_anchor_take(&end);
	passed = end.clock - f->anchor.clock;
	/* Stretched over what was before the anchor, the error grows. */
	if (passed < 1024 * mrs_anchor_width ||
	    passed < f->anchor.clock - f->begun)
		return mrs_clock_rate(&end);
	return mrs_scale_between(&f->anchor, &end);
}

/* Before there are any handlers. */
void mrs_clock_init(void)
{
	struct mrs_anchor begin, end;
	u64 width, least = U64_MAX;
	unsigned int i;
	int cpu;

	mrs_cycles = mrs_cycles && mrs_cycles_stable();
	mrs_anchor_width = U64_MAX;
	for (i = 0; i < 100; i++) {
		mrs_anchor_take(&begin);
		width = mrs_clock() - begin.clock;
		least = min(least, width);
	}
	/* Cold caches are slower than this, but not by that much. */
	mrs_anchor_width = 8 * max(least, 1ULL);

	mrs_anchor_take(&begin);
	fsleep(2 * USEC_PER_MSEC);
	mrs_anchor_take(&end);
	for_each_possible_cpu(cpu) {
		struct mrs_rate *r = per_cpu_ptr(&mrs_rates, cpu);

		r->since = end;
		r->scale = mrs_scale_between(&begin, &end);
	}
}
