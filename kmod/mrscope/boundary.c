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
	[MRS_B_PAGE_SIZE] = "page_size",
	[MRS_B_DMA] = "dma",
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
	struct mrs_args args = { .regs = regs };

	p->on_entry(p, &args);
	return 0;
}

/*
 * An entry-only probe: by ftrace where it has a call in the function, else a
 * kprobe.  Registering a kprobe finds the symbol's address, too.
 */
static int mrs_entry_register(struct mrs_probe *p)
{
	struct kprobe *kp = &p->rp.kp;
	int err;

	kp->pre_handler = mrs_kprobe_entry;
	if (!p->addr) {
		kp->flags = KPROBE_FLAG_DISABLED;
		err = register_kprobe(kp);
		if (err)
			return err;
		p->entry_addr = kp->addr;
		unregister_kprobe(kp);
	} else {
		p->entry_addr = p->addr;
	}
	if (!mrs_entry_arm(p))
		return 0;

	memset(kp, 0, sizeof(*kp));
	kp->addr = p->entry_addr;
	kp->pre_handler = mrs_kprobe_entry;
	p->entry_addr = NULL;
	return register_kprobe(kp);
}

static int mrs_probe_register(struct mrs_probe *p, const char *symbol)
{
	memset(&p->rp, 0, sizeof(p->rp));
	p->rp.kp.symbol_name = symbol;
	p->rp.kp.addr = symbol ? NULL : p->addr;
	if (p->on_entry)
		return mrs_entry_register(p);
	p->rp.entry_handler = p->on_call;
	p->rp.handler = p->on_return;
	/* Tasks sleep in a pin: count on more of them than there are CPUs. */
	p->rp.maxactive = max(512U, 4 * num_possible_cpus());
	return register_kretprobe(&p->rp);
}

/* Arms @p, under the first of its names that there is. */
int mrs_probe_arm(struct mrs_probe *p)
{
	const char *const *symbol;

	if (!p->symbols) {
		p->error = mrs_probe_register(p, NULL);
	} else {
		p->error = -ENOENT;
		for (symbol = p->symbols; *symbol; symbol++) {
			int err = mrs_probe_register(p, *symbol);

			if (err != -ENOENT)
				p->error = err;
			if (!err) {
				p->symbol = *symbol;
				break;
			}
		}
	}
	p->armed = !p->error;
	return p->error;
}

void mrs_probe_disarm(struct mrs_probe *p)
{
	if (!p->armed)
		return;
	if (p->entry_addr)
		mrs_entry_disarm(p);
	else if (p->on_entry)
		unregister_kprobe(&p->rp.kp);
	else
		unregister_kretprobe(&p->rp);
	p->missed = mrs_probe_missed(p);
	p->armed = false;
	p->entry_addr = NULL;
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

/*
 * Arms what is wanted and not armed, and the other way round.  Inner boundaries
 * are armed before the roots, so that no record lacks them; roots are disarmed
 * first.
 */
void mrs_boundary_update(void)
{
	struct mrs_probe *p;

	lockdep_assert_held(&mrs_lock);
	list_for_each_entry_reverse(p, &mrs_probes, node)
		if (p->armed && !mrs_probe_wanted(p))
			mrs_probe_disarm(p);
	list_for_each_entry(p, &mrs_probes, node)
		if (!p->armed && mrs_probe_wanted(p))
			mrs_probe_arm(p);
	mrs_note_armed();
}

/*
 * Operations under way cannot be carried over a change of what is armed: their
 * last boundary might be gone.  They are dropped, and counted as lost.
 */
void mrs_reconfigure(void (*change)(const void *arg), const void *arg)
{
	struct mrs_probe *p;

	mutex_lock(&mrs_lock);
	list_for_each_entry_reverse(p, &mrs_probes, node)
		mrs_probe_disarm(p);
	mrs_context_reset();
	/* The kernel may have lost its trust in the counter since. */
	mrs_cycles = mrs_cycles_stable();
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
	mrs_probe_disarm(p);
	list_del(&p->node);
	free_percpu(p->hits);
	if (!p->symbols)
		kfree(p);
}

/* Drivers' operations, found by address. */
static int mrs_add_operation(void *addr, mrs_entry_handler_t on_entry)
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
	err = mrs_add_operation(dev->ops.reg_user_mr, mrs_reg_driver_entry);
	if (!err)
		err = mrs_add_operation(dev->ops.rereg_user_mr,
					mrs_rereg_driver_entry);
	if (!err)
		err = mrs_add_operation(dev->ops.reg_user_mr_dmabuf,
					mrs_dmabuf_driver_entry);
	if (!err)
		err = mrs_add_operation(dev->ops.dereg_mr,
					mrs_dereg_driver_entry);
	mrs_boundary_update();
	return err;
}

/* @mod is about to go, its last deregistrations are done. */
void mrs_boundary_module_gone(struct module *mod)
{
	struct mrs_probe *p, *next;

	lockdep_assert_held(&mrs_lock);
	list_for_each_entry_safe_reverse(p, next, &mrs_probes, node) {
		void *addr = p->addr ?: p->entry_addr ?:
			     p->armed ? p->rp.kp.addr : NULL;

		if (!addr || !within_module((unsigned long)addr, mod))
			continue;
		if (p->symbols) {
			mrs_probe_disarm(p);
			p->error = -ENOENT;
		} else {
			mrs_probe_remove(p);
		}
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
	list_for_each_entry_safe_reverse(p, next, &mrs_probes, node)
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
		       "only in deep mode";
	if (p->error == -ENOENT)
		return "no such symbol: module not loaded, or another name";
	return "the kernel refuses a probe there";
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
