// SPDX-License-Identifier: GPL-2.0
/*
 * Function entries by ftrace: less than half the price of a kprobe.
 *
 * One ftrace_ops serves all entries, so that arming one is a change of its
 * filter.  The callback finds the probe by address in a small table, which
 * changes under mrs_lock and is read without one.
 */
#include "observer.h"

#define MRS_ENTRY_BITS	9
#define MRS_ENTRIES	BIT(MRS_ENTRY_BITS)

/*
 * Functions begin at multiples of 16, and ftrace's call is within the first 16
 * bytes: both name the same function after this shift.
 */
#define MRS_KEY(addr)	((unsigned long)(addr) >> 4)
#define MRS_TOMBSTONE	1UL

struct mrs_entry_slot {
	unsigned long key;	/* 0: free, and none behind it */
	struct mrs_probe *probe;
};

static struct mrs_entry_slot mrs_slots[MRS_ENTRIES];
static unsigned int mrs_nslots;

static struct mrs_probe *mrs_probe_at(unsigned long ip)
{
	unsigned long key = MRS_KEY(ip);
	unsigned int i = key % MRS_ENTRIES;
	unsigned long found;

	while ((found = READ_ONCE(mrs_slots[i].key))) {
		if (found == key)
			return READ_ONCE(mrs_slots[i].probe);
		i = (i + 1) % MRS_ENTRIES;
	}
	return NULL;
}

/* However full the tables of probes and contexts are. */
static noinline void mrs_entry_any(unsigned long ip, u64 now,
				   struct mrs_args args)
{
	struct mrs_probe *p = mrs_probe_at(ip);

	if (p)
		mrs_entry(p, mrs_running(), now, args);
}

/* Calls nothing on its usual way but the handler: a registration has ten. */
static __always_inline void mrs_entry_at(unsigned long ip, u64 now,
					 struct ftrace_regs *fregs)
{
	struct mrs_entry_slot *slot = &mrs_slots[MRS_KEY(ip) % MRS_ENTRIES];
	struct mrs_context *ctx = mrs_context_home();
	struct mrs_args args = { .fregs = fregs };

	if (likely(READ_ONCE(slot->key) == MRS_KEY(ip) &&
		   !atomic_read(&mrs_displaced)))
		mrs_entry(READ_ONCE(slot->probe),
			  READ_ONCE(ctx->task) == current ? ctx->top : NULL,
			  now, args);
	else
		mrs_entry_any(ip, now, args);
}

/* Apart, so that the other way keeps no registers over a call. */
static noinline void mrs_entry_portable(unsigned long ip,
					struct ftrace_regs *fregs)
{
	mrs_entry_at(ip, ktime_get_mono_fast_ns(), fregs);
}

static void mrs_entry_callback(unsigned long ip, unsigned long parent_ip,
			       struct ftrace_ops *ops,
			       struct ftrace_regs *fregs)
{
	preempt_disable_notrace();
	if (likely(mrs_cycles))
		mrs_entry_at(ip, get_cycles(), fregs);
	else
		mrs_entry_portable(ip, fregs);
	preempt_enable_notrace();
}

static struct ftrace_ops mrs_ops = {
	.func = mrs_entry_callback,
};

static int mrs_slot_add(struct mrs_probe *p)
{
	unsigned int i = MRS_KEY(p->entry_addr) % MRS_ENTRIES;

	/* One slot stays free, so that looking for an unknown key ends. */
	if (mrs_nslots >= MRS_ENTRIES - 1)
		return -ENOSPC;
	while (mrs_slots[i].key > MRS_TOMBSTONE)
		i = (i + 1) % MRS_ENTRIES;
	WRITE_ONCE(mrs_slots[i].probe, p);
	/* A callback that sees the key finds the probe. */
	smp_store_release(&mrs_slots[i].key, MRS_KEY(p->entry_addr));
	mrs_nslots++;
	return 0;
}

static void mrs_slot_remove(struct mrs_probe *p)
{
	unsigned int i;

	for (i = 0; i < MRS_ENTRIES; i++) {
		if (mrs_slots[i].key <= MRS_TOMBSTONE ||
		    mrs_slots[i].probe != p)
			continue;
		WRITE_ONCE(mrs_slots[i].key, MRS_TOMBSTONE);
		mrs_nslots--;
	}
	/* Nobody reads the table: forget the tombstones. */
	if (!mrs_nslots)
		memset(mrs_slots, 0, sizeof(mrs_slots));
}

/* Arms the entries at @probes' entry_addr; sets each one's error. */
void mrs_entries_arm(struct mrs_probe **probes, unsigned int n)
{
	bool fresh = !mrs_nslots;
	unsigned int i;
	int err;

	for (i = 0; i < n; i++) {
		struct mrs_probe *p = probes[i];
		unsigned long addr = (unsigned long)p->entry_addr;

		p->error = mrs_slot_add(p);
		if (p->error)
			continue;
		p->error = ftrace_set_filter_ip(&mrs_ops, addr, 0,
						fresh && mrs_nslots == 1);
		if (p->error)
			mrs_slot_remove(p);
	}
	if (!fresh || !mrs_nslots)
		return;

	err = register_ftrace_function(&mrs_ops);
	for (i = 0; err && i < n; i++) {
		if (probes[i]->error)
			continue;
		probes[i]->error = err;
		mrs_slot_remove(probes[i]);
	}
}

void mrs_entries_disarm(struct mrs_probe **probes, unsigned int n)
{
	unsigned long addrs[MRS_BATCH];
	unsigned int i;

	if (!n)
		return;
	for (i = 0; i < n; i++)
		addrs[i] = (unsigned long)probes[i]->entry_addr;
	/* An empty filter would mean every function of the kernel. */
	if (mrs_nslots == n)
		unregister_ftrace_function(&mrs_ops);
	else
		ftrace_set_filter_ips(&mrs_ops, addrs, n, 1, 0);
	for (i = 0; i < n; i++)
		mrs_slot_remove(probes[i]);
	/* A callback that is under way may still use the probes. */
	synchronize_rcu();
}

void mrs_entry_exit(void)
{
	/* Leaves pointers to what it frees: once only, and at the very end. */
	ftrace_free_filter(&mrs_ops);
}
