// SPDX-License-Identifier: GPL-2.0
/*
 * Where the probes are: arming and disarming them as drivers come and go.
 *
 * Core functions are found by name, a driver's operations by the addresses in
 * device->ops.  A probe in a module must be withdrawn before the module's text
 * goes (kprobes would keep a dead one, which stays dead when the module is
 * loaded again at the same address), and armed anew when it comes back.
 */
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "observer.h"

/* Arming and its configuration, the lists of probes and of devices. */
DEFINE_MUTEX(mrs_lock);
LIST_HEAD(mrs_probes);
bool mrs_enabled;
bool mrs_deep;
unsigned long mrs_disarmed;
unsigned long mrs_armed;

static const char *const mrs_boundary_names[] = {
	[MRS_B_IOCTL] = "ioctl",
	[MRS_B_UVERBS] = "uverbs",
	[MRS_B_DRIVER] = "driver",
	[MRS_B_KEY] = "key",
	[MRS_B_UMEM] = "umem",
	[MRS_B_ATTACH] = "attach",
	[MRS_B_PIN] = "pin",
	[MRS_B_SG] = "sg",
	[MRS_B_PAGE_SIZE] = "page_size",
	[MRS_B_DMA] = "dma",
	[MRS_B_TABLE] = "table",
	[MRS_B_FINISH] = "finish",
	[MRS_B_COMMIT] = "commit",
	[MRS_B_SLOW] = "slow",
	[MRS_B_MIGRATE] = "migrate",
	[MRS_B_DESTROY] = "destroy",
	[MRS_B_DEREG] = "dereg",
	[MRS_B_RELEASE] = "release",
	[MRS_B_UNMAP] = "unmap",
};

static_assert(ARRAY_SIZE(mrs_boundary_names) == MRS_BOUNDARIES);

const char *mrs_boundary_name(enum mrs_boundary_id id)
{
	return mrs_boundary_names[id];
}

int mrs_boundary_find(const char *name)
{
	return match_string(mrs_boundary_names, MRS_BOUNDARIES, name);
}

unsigned long mrs_probe_hits(const struct mrs_probe *p)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += *per_cpu_ptr(p->hits, cpu);
	return sum;
}

unsigned long mrs_probe_missed(const struct mrs_probe *p)
{
	return p->missed +
	       (p->armed ? p->rp.nmissed + p->rp.kp.nmissed : 0);
}

/* Operations that were never seen to begin. */
u64 mrs_roots_missed(void)
{
	struct mrs_probe *p;
	u64 sum = 0;

	list_for_each_entry(p, &mrs_probes, node)
		if (p->boundary == MRS_B_UVERBS || p->boundary == MRS_B_DEREG)
			sum += mrs_probe_missed(p);
	return sum;
}

static int mrs_kprobe_entry(struct kprobe *kp, struct pt_regs *regs)
{
	struct mrs_probe *p = container_of(kp, struct mrs_probe, rp.kp);
	u64 now = mrs_clock();

	mrs_entry(p, mrs_running(), now, (struct mrs_args){ .regs = regs });
	return 0;
}

/* Calls @try with the names of @p, until it has another answer than -ENOENT. */
static int mrs_try_symbols(struct mrs_probe *p,
			   int (*try)(struct mrs_probe *p, const char *symbol))
{
	const char *const *symbol;
	int err = -ENOENT;

	if (!p->symbols)
		return try(p, NULL);
	for (symbol = p->symbols; *symbol && err == -ENOENT; symbol++) {
		err = try(p, *symbol);
		if (!err)
			p->symbol = *symbol;
	}
	return err;
}

/* Kernel symbols are found by registering a kprobe that is never armed. */
static int mrs_try_locate(struct mrs_probe *p, const char *symbol)
{
	memset(&p->rp, 0, sizeof(p->rp));
	p->rp.kp.symbol_name = symbol;
	p->rp.kp.addr = symbol ? NULL : p->addr;
	p->rp.kp.pre_handler = mrs_kprobe_entry;
	p->rp.kp.flags = KPROBE_FLAG_DISABLED;
	return register_kprobe(&p->rp.kp);
}

bool mrs_symbol_known(const char *symbol)
{
	struct kprobe kp = {
		.symbol_name = symbol,
		.flags = KPROBE_FLAG_DISABLED,
	};

	if (register_kprobe(&kp))
		return false;
	unregister_kprobe(&kp);
	return true;
}

static int mrs_try_pair(struct mrs_probe *p, const char *symbol)
{
	memset(&p->rp, 0, sizeof(p->rp));
	p->rp.kp.symbol_name = symbol;
	p->rp.kp.addr = symbol ? NULL : p->addr;
	p->rp.entry_handler = p->on_call;
	p->rp.handler = p->on_return;
	/* Tasks sleep in a pin: count on more of them than there are CPUs. */
	p->rp.maxactive = max(512U, 4 * num_possible_cpus());
	return register_kretprobe(&p->rp);
}

/* Entries that ftrace has no call in. */
static int mrs_arm_kprobe(struct mrs_probe *p)
{
	memset(&p->rp, 0, sizeof(p->rp));
	p->rp.kp.addr = p->entry_addr;
	p->rp.kp.pre_handler = mrs_kprobe_entry;
	p->entry_addr = NULL;
	return register_kprobe(&p->rp.kp);
}

/* The kernel waits for its readers once for each call, so call it for many. */
static struct kretprobe *mrs_some_pairs[MRS_BATCH];
static struct kprobe *mrs_some_kprobes[MRS_BATCH];
static struct mrs_probe *mrs_some_entries[MRS_BATCH];

/**
 * mrs_probes_arm - arms probes, entries before pairs
 * @probes: at most MRS_BATCH of them, inner boundaries first
 * @n: how many
 *
 * Return: 0, or the error of one that could not be armed; each has its own.
 */
int mrs_probes_arm(struct mrs_probe **probes, unsigned int n)
{
	unsigned int i, k = 0;
	int err = 0;

	lockdep_assert_held(&mrs_lock);
	for (i = 0; i < n; i++) {
		struct mrs_probe *p = probes[i];

		if (!p->on_entry)
			continue;
		p->error = mrs_try_symbols(p, mrs_try_locate);
		if (p->error)
			continue;
		p->entry_addr = p->rp.kp.addr;
		mrs_some_kprobes[k] = &p->rp.kp;
		mrs_some_entries[k++] = p;
	}
	unregister_kprobes(mrs_some_kprobes, k);
	mrs_entries_arm(mrs_some_entries, k);

	for (i = 0; i < n; i++) {
		struct mrs_probe *p = probes[i];

		if (!p->on_entry)
			p->error = mrs_try_symbols(p, mrs_try_pair);
		else if (p->error && p->entry_addr)
			p->error = mrs_arm_kprobe(p);
		p->armed = !p->error;
		err = err ?: p->error;
	}
	return err;
}

/* Disarms those of @probes that are armed; roots had better come first. */
void mrs_probes_disarm(struct mrs_probe **probes, unsigned int n)
{
	unsigned int i, npairs = 0, nkprobes = 0, nentries = 0;

	lockdep_assert_held(&mrs_lock);
	for (i = 0; i < n; i++) {
		struct mrs_probe *p = probes[i];

		if (!p->armed)
			continue;
		if (p->entry_addr)
			mrs_some_entries[nentries++] = p;
		else if (p->on_entry)
			mrs_some_kprobes[nkprobes++] = &p->rp.kp;
		else
			mrs_some_pairs[npairs++] = &p->rp;
	}
	unregister_kretprobes(mrs_some_pairs, npairs);
	unregister_kprobes(mrs_some_kprobes, nkprobes);
	mrs_entries_disarm(mrs_some_entries, nentries);

	for (i = 0; i < n; i++) {
		probes[i]->missed = mrs_probe_missed(probes[i]);
		probes[i]->armed = false;
		probes[i]->entry_addr = NULL;
	}
}

static bool mrs_probe_wanted(const struct mrs_probe *p)
{
	if (!mrs_enabled || test_bit(p->boundary, &mrs_disarmed))
		return false;
	switch (p->need) {
	case MRS_REAL_DMA:
		return mrs_any_real_dma();
	case MRS_DEEP:
		return mrs_deep;
	case MRS_DEEP_REAL_DMA:
		return mrs_deep && mrs_any_real_dma();
	case MRS_VIRT_DMA_RETURN:
		return mrs_any_virt_dma_return();
	default:
		return true;
	}
}

static void mrs_note_armed(void)
{
	unsigned long armed = 0;
	struct mrs_probe *p;

	list_for_each_entry(p, &mrs_probes, node)
		if (p->armed)
			armed |= BIT(p->boundary);
	WRITE_ONCE(mrs_armed, armed);
}

static bool mrs_probe_any(const struct mrs_probe *p, const void *arg)
{
	return true;
}

static bool mrs_probe_unwanted(const struct mrs_probe *p, const void *arg)
{
	return !mrs_probe_wanted(p);
}

static void mrs_disarm_some(bool (*which)(const struct mrs_probe *p,
					  const void *arg), const void *arg)
{
	struct mrs_probe *batch[MRS_BATCH];
	struct mrs_probe *p;
	unsigned int n = 0;

	lockdep_assert_held(&mrs_lock);
	list_for_each_entry_reverse(p, &mrs_probes, node) {
		if (!p->armed || !which(p, arg))
			continue;
		batch[n++] = p;
		if (n == MRS_BATCH) {
			mrs_probes_disarm(batch, n);
			n = 0;
		}
	}
	mrs_probes_disarm(batch, n);
}

static void mrs_arm_wanted(void)
{
	struct mrs_probe *batch[MRS_BATCH];
	struct mrs_probe *p;
	unsigned int n = 0;

	list_for_each_entry(p, &mrs_probes, node) {
		if (p->armed || !mrs_probe_wanted(p))
			continue;
		batch[n++] = p;
		if (n == MRS_BATCH) {
			mrs_probes_arm(batch, n);
			n = 0;
		}
	}
	mrs_probes_arm(batch, n);
}

/*
 * Arms what is wanted and not armed, and the other way round.  Inner boundaries
 * are armed before the roots, so that no record lacks them; roots are disarmed
 * first.
 */
void mrs_boundary_update(void)
{
	mrs_disarm_some(mrs_probe_unwanted, NULL);
	mrs_arm_wanted();
	mrs_note_armed();
}

/*
 * Operations under way cannot be carried over a change of what is armed: their
 * last boundary might be gone.  They are dropped, and counted as lost.
 */
void mrs_reconfigure(void (*change)(const void *arg), const void *arg)
{
	mutex_lock(&mrs_lock);
	mrs_disarm_some(mrs_probe_any, NULL);
	mrs_context_reset();
	/* The kernel may have lost its trust in the counter since. */
	mrs_cycles = mrs_cycles && mrs_cycles_stable();
	change(arg);
	mrs_boundary_update();
	mutex_unlock(&mrs_lock);
}

static int mrs_probe_add(struct mrs_probe *p)
{
	p->hits = alloc_percpu(unsigned long);
	if (!p->hits)
		return -ENOMEM;
	p->error = -ENOENT;
	list_add_tail(&p->node, &mrs_probes);
	return 0;
}

static void mrs_probe_remove(struct mrs_probe *p)
{
	list_del(&p->node);
	free_percpu(p->hits);
	if (!p->symbols)
		kfree(p);
}

/* Drivers' operations, found by address. */
static int mrs_add_operation(void *addr, enum mrs_during during,
			     mrs_entry_handler_t *on_entry)
{
	struct mrs_probe *p;
	int err;

	if (!addr)
		return 0;
	list_for_each_entry(p, &mrs_probes, node)
		if (p->addr == addr && p->on_entry == on_entry)
			return 0;

	p = kzalloc(sizeof(*p), GFP_KERNEL);
	if (!p)
		return -ENOMEM;
	p->boundary = MRS_B_DRIVER;
	p->addr = addr;
	p->during = during;
	p->on_entry = on_entry;
	err = mrs_probe_add(p);
	if (err) {
		kfree(p);
		return err;
	}
	/* An inner boundary: to be armed before the roots. */
	list_move(&p->node, &mrs_probes);
	return 0;
}

int mrs_boundary_add_driver(struct ib_device *dev)
{
	int err;

	lockdep_assert_held(&mrs_lock);
	err = mrs_add_operation(dev->ops.reg_user_mr, MRS_REG,
				mrs_reg_driver_entry);
	if (!err)
		err = mrs_add_operation(dev->ops.rereg_user_mr, MRS_REG,
					mrs_rereg_driver_entry);
	if (!err)
		err = mrs_add_operation(dev->ops.reg_user_mr_dmabuf, MRS_REG,
					mrs_dmabuf_driver_entry);
	if (!err)
		err = mrs_add_operation(dev->ops.dereg_mr, MRS_DEREG,
					mrs_dereg_driver_entry);
	mrs_boundary_update();
	return err;
}

static bool mrs_probe_within(const struct mrs_probe *p, const void *mod)
{
	void *addr = p->addr ?: p->entry_addr ?: p->rp.kp.addr;

	return addr && within_module((unsigned long)addr, mod);
}

/* @mod is about to go, its last deregistrations are done. */
void mrs_boundary_module_gone(struct module *mod)
{
	struct mrs_probe *p, *next;

	mrs_disarm_some(mrs_probe_within, mod);
	list_for_each_entry_safe(p, next, &mrs_probes, node) {
		if (!mrs_probe_within(p, mod))
			continue;
		if (p->symbols)
			p->error = -ENOENT;
		else
			mrs_probe_remove(p);
	}
	mrs_note_armed();
}

static int mrs_add_all(struct mrs_probe *probes, unsigned int n)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = mrs_probe_add(&probes[i]);
	return err;
}

int mrs_boundary_init(void)
{
	int err;

	err = mrs_add_all(mrs_driver_probes, mrs_driver_nprobes);
	if (!err)
		err = mrs_add_all(mrs_dereg_probes, mrs_dereg_nprobes);
	if (!err)
		err = mrs_add_all(mrs_reg_probes, mrs_reg_nprobes);
	if (err)
		mrs_boundary_exit();
	return err;
}

void mrs_boundary_exit(void)
{
	struct mrs_probe *p, *next;

	mutex_lock(&mrs_lock);
	mrs_disarm_some(mrs_probe_any, NULL);
	list_for_each_entry_safe(p, next, &mrs_probes, node)
		mrs_probe_remove(p);
	mrs_entry_exit();
	mutex_unlock(&mrs_lock);
}

static const char *mrs_probe_reason(const struct mrs_probe *p)
{
	if (!mrs_enabled)
		return "disabled";
	if (test_bit(p->boundary, &mrs_disarmed))
		return "disarmed on request";
	if (!mrs_probe_wanted(p))
		return p->need == MRS_REAL_DMA ?
		       "no device maps through the DMA API" :
		       p->need == MRS_VIRT_DMA_RETURN ?
		       "no device needs it" : "only in deep mode";
	if (p->error == -ENOENT)
		return p->optional ?
		       "no such symbol: not every kernel has it" :
		       "no such symbol: module not loaded, or another name";
	return p->error == -ENOMEM ? "no memory for its probe" :
				     "the kernel refuses a probe there";
}

void mrs_boundary_show(struct seq_file *m)
{
	struct mrs_probe *p;
	unsigned int b;

	lockdep_assert_held(&mrs_lock);
	for (b = 0; b < MRS_BOUNDARIES; b++) {
		list_for_each_entry(p, &mrs_probes, node) {
			if (p->boundary != b)
				continue;
			seq_printf(m, "boundary %s %s ", mrs_boundary_names[b],
				   p->armed ? "armed" : "unarmed");
			if (p->symbols)
				seq_puts(m, p->symbol ?: p->symbols[0]);
			else
				seq_printf(m, "%ps", p->addr);
			seq_printf(m, " %lu %lu", mrs_probe_hits(p),
				   mrs_probe_missed(p));
			if (!p->armed)
				seq_printf(m, " %s", mrs_probe_reason(p));
			seq_putc(m, '\n');
		}
	}
}

/* Has somebody else disabled or killed an armed probe? */
bool mrs_boundary_gone(char *why, size_t len)
{
	struct mrs_probe *p;

	lockdep_assert_held(&mrs_lock);
	list_for_each_entry(p, &mrs_probes, node) {
		if (!p->armed || p->entry_addr ||
		    !(kprobe_gone(&p->rp.kp) || kprobe_disabled(&p->rp.kp)))
			continue;
		snprintf(why, len, "fail: the probe of boundary %s is dead",
			 mrs_boundary_names[p->boundary]);
		return true;
	}
	return false;
}
