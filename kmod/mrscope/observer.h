/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mrscope: what the parts of the observer share.
 *
 * A probe on a boundary calls a handler (reg.c, dereg.c).  The handler finds
 * the running operation of its task (context.c), adds the gap since the last
 * boundary to the stage that just ended, and enters the next one.  The last
 * boundary closes the record (record.c), which is counted (stats.c) and
 * published as trace events.
 */
#ifndef MRSCOPE_OBSERVER_H
#define MRSCOPE_OBSERVER_H

#include <linux/hash.h>
#include <linux/kprobes.h>
#include <linux/list.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <rdma/ib_verbs.h>

#include "compat.h"
#include "mrscope.h"
#include "mrscope_version.h"

#define MRS_STAGES	MRSCOPE_REG_STAGES	/* the larger of the two */

static_assert((int)MRSCOPE_DEREG_STAGES <= (int)MRS_STAGES);

struct seq_file;

/* ---- boundaries (boundary.c) ---- */

enum mrs_boundary_id {
	MRS_B_IOCTL,
	MRS_B_UVERBS,
	MRS_B_DRIVER,
	MRS_B_KEY,
	MRS_B_UMEM,
	MRS_B_ATTACH,
	MRS_B_PIN,
	MRS_B_SG,
	MRS_B_PAGE_SIZE,
	MRS_B_DMA,
	MRS_B_TABLE,
	MRS_B_FINISH,
	MRS_B_COMMIT,
	MRS_B_SLOW,
	MRS_B_MIGRATE,
	MRS_B_DESTROY,
	MRS_B_DEREG,
	MRS_B_RELEASE,
	MRS_B_UNMAP,
	MRS_BOUNDARIES
};

/* When a probe is worth arming. */
enum mrs_need {
	MRS_ALWAYS,
	MRS_REAL_DMA,		/* only where a device maps through the DMA API */
	MRS_DEEP,		/* only in deep mode */
	MRS_DEEP_REAL_DMA,
	MRS_VIRT_DMA_RETURN,	/* only where nothing else tells its end */
};

struct mrs_probe;

/*
 * A function's arguments at its entry, from ftrace or from a kprobe.  To be
 * passed by value, in registers.
 */
struct mrs_args {
	struct ftrace_regs *fregs;
	struct pt_regs *regs;
};

static inline unsigned long mrs_argument(struct mrs_args args,
					 unsigned int n)
{
	if (likely(args.fregs))
		return mrs_ftrace_argument(args.fregs, n);
	return regs_get_kernel_argument(args.regs, n);
}

/* What a task is in the middle of. */
enum mrs_during {
	MRS_ANYTHING,
	MRS_REG,		/* a registration or re-registration */
	MRS_COMMIT,		/* its root returned 0, the commit is to come */
	MRS_DEREG,
};

struct mrs_frame;

typedef void mrs_entry_handler_t(struct mrs_probe *p, struct mrs_frame *f,
				 u64 now, struct mrs_args args);

/**
 * struct mrs_probe - one probed function
 * @boundary: the boundary that it marks
 * @symbols: names it has had, the first found is taken; NULL: by address
 * @addr: the function, for probes by address
 * @op: enum mrscope_op that begins here, for roots
 * @entry: enum mrscope_entry, for roots
 * @method: a root whose request is in attributes, not in a command
 * @optional: not every kernel has the function, and none the less for it
 * @need: when to arm
 * @during: when an entry is of interest; its handler gets the task's innermost
 *	operation, which is such a one (or NULL: only with MRS_ANYTHING)
 * @on_entry: handler of an entry-only probe, NULL for a pair; preemption is off
 * @on_call: entry handler of a pair; non-zero: the return is of no interest
 * @on_return: return handler of a pair
 * @hits: calls inside an operation
 * @missed: calls the probe could not take, of earlier armings
 * @symbol: the name that was armed, or NULL
 * @error: why it is not armed, 0 or a negative errno
 * @node: in the list of all probes
 */
struct mrs_probe {
	enum mrs_boundary_id boundary;
	const char *const *symbols;
	void *addr;
	u8 op;
	u8 entry;
	bool method;
	bool optional;
	enum mrs_need need;
	u8 during;
	mrs_entry_handler_t *on_entry;
	kretprobe_handler_t on_call;
	kretprobe_handler_t on_return;

	struct kretprobe rp;		/* rp.kp alone for an entry-only probe */
	void *entry_addr;		/* armed by ftrace; else NULL */
	unsigned long __percpu *hits;
	unsigned long missed;
	const char *symbol;
	int error;
	bool armed;
	struct list_head node;
};

#define MRS_BATCH	32		/* probes armed or disarmed in one go */

/* The names of a probed function, the one to prefer first. */
#define MRS_SYMBOLS(...)	((const char *const []){ __VA_ARGS__, NULL })

extern struct mutex mrs_lock;		/* arming, devices, configuration */
extern struct list_head mrs_probes;
extern bool mrs_enabled;
extern bool mrs_deep;
extern unsigned long mrs_disarmed;	/* bit for each boundary kept unarmed */
extern unsigned long mrs_armed;		/* bit for each boundary armed now */

bool mrs_symbol_known(const char *symbol);
const char *mrs_boundary_name(enum mrs_boundary_id id);
int mrs_boundary_find(const char *name);
int mrs_boundary_init(void);
void mrs_boundary_exit(void);
void mrs_boundary_update(void);
void mrs_boundary_module_gone(struct module *mod);
int mrs_boundary_add_driver(struct ib_device *dev);
int mrs_probes_arm(struct mrs_probe **probes, unsigned int n);
void mrs_probes_disarm(struct mrs_probe **probes, unsigned int n);
unsigned long mrs_probe_hits(const struct mrs_probe *p);
unsigned long mrs_probe_missed(const struct mrs_probe *p);
u64 mrs_roots_missed(void);
void mrs_boundary_show(struct seq_file *m);
bool mrs_boundary_gone(char *why, size_t len);

/* Entries by ftrace (entry.c); called with mrs_lock held. */
void mrs_entries_arm(struct mrs_probe **probes, unsigned int n);
void mrs_entries_disarm(struct mrs_probe **probes, unsigned int n);
void mrs_entry_exit(void);

static inline struct mrs_probe *mrs_probe_of(struct kretprobe_instance *ri)
{
	return container_of(get_kretprobe(ri), struct mrs_probe, rp);
}

static inline void mrs_hit(struct mrs_probe *p)
{
	this_cpu_inc(*p->hits);
}

/* ---- records and contexts (context.c, record.c) ---- */

struct mrs_device;

/* One operation, as it is published; the fields are those of mrscope.h. */
struct mrs_record {
	u64 seq;
	u64 start_ns;
	u64 addr;
	u64 length;
	u64 iova;
	u64 pages;
	u64 page_size;
	u32 op;
	u32 entry;
	u32 purpose;
	u32 flags;
	u32 access;
	s32 ret;
	s32 failed_stage;
	u32 observed;
	u32 merged;
	u32 pin_batches;
	u32 sg_entries;
	u32 dma_entries;
	u32 faults_minor;
	u32 faults_major;
	u32 nvcsw;
	u32 nivcsw;
	u32 slow_calls;
	u32 migrations;
	u32 lkey;
	u32 rkey;
	s32 owner_tgid;
	struct mrs_device *dev;
	char owner_comm[TASK_COMM_LEN];

	/* Set when the record is closed, not cleared before. */
	u64 ns[MRS_STAGES];
	u64 total_ns;
	u64 slow_ns;
	u64 probe_cost_ns;
	s32 tid;
	s32 tgid;
	s32 vtid;
	s32 vtgid;
	char comm[TASK_COMM_LEN];
};

/* One moment by both clocks. */
struct mrs_anchor {
	u64 clock;		/* mrs_clock() */
	u64 ns;			/* CLOCK_MONOTONIC */
};

/* An operation under way.  Times are of mrs_clock(). */
struct mrs_frame {
	struct mrs_anchor anchor;	/* about when it began, if someone listens */
	u64 begun;		/* at or before the anchor */
	u64 last;		/* the last boundary */
	u64 gaps[MRS_STAGES];
	u64 slow_entered;
	u64 slow;
	unsigned long min_flt;
	unsigned long maj_flt;
	unsigned long nvcsw;
	unsigned long nivcsw;
	void *sgt;		/* between DMA mapping entry and return */
	void *attrs;		/* uverbs_attr_bundle, while inside the root */
	const void *mr;		/* once it is made; not to be followed later */
	u32 rereg_flags;
	u32 n_entry;		/* probes hit, for the cost */
	u32 n_pair;
	u8 during;
	u8 stage;
	u8 before_key;		/* the stage that a key span interrupts */
	bool driver_seen;
	bool calibration;	/* not to be published */
	struct mrs_record rec;	/* the last: see mrs_frame_begin() */
};

#define MRS_DEPTH	3	/* reg or rereg > dereg > one more for safety */

struct mrs_context {
	struct task_struct *task;	/* NULL: free */
	struct mrs_frame *top;		/* its innermost; NULL: none as yet */
	struct mrs_frame *frames;	/* MRS_DEPTH of them */
};

/* How many voluntary and involuntary switches the task has behind it. */
static inline unsigned long mrs_switches(void)
{
	return current->nvcsw + current->nivcsw;
}

extern bool mrs_cycles;

/*
 * Boundaries are stamped in cycles where these are stable, for it is the
 * cheapest clock; else in ns.  Closing a record scales its gaps to the
 * CLOCK_MONOTONIC time that has passed since its anchor.
 */
static inline u64 mrs_clock(void)
{
	return likely(mrs_cycles) ? get_cycles() : ktime_get_mono_fast_ns();
}

extern u64 mrs_anchor_width;

/*
 * Both clocks are read within a short time, or once more: an interrupt, or a
 * virtual CPU that is taken away, may come between them.
 */
static inline void mrs_anchor_take(struct mrs_anchor *a)
{
	unsigned int tries = 5;

	do {
		a->clock = mrs_clock();
		a->ns = ktime_get_mono_fast_ns();
	} while (unlikely(mrs_clock() - a->clock > mrs_anchor_width) && --tries);
}

/* ---- the clock (clock.c) ---- */

#define MRS_SCALE_SHIFT	20

void mrs_clock_init(void);
u32 mrs_clock_usual_scale(void);
u32 mrs_clock_scale(const struct mrs_frame *f);

/* A task's slot lies within a short window behind its hash (context.c). */
#define MRS_SLOT_BITS	10
#define MRS_SLOTS	BIT(MRS_SLOT_BITS)
#define MRS_WINDOW	8

extern struct mrs_context mrs_contexts[];
extern atomic_t mrs_displaced;

struct mrs_context *mrs_context_find_displaced(struct mrs_context *home);

/* Where the task's context is, unless it is displaced. */
static inline struct mrs_context *mrs_context_home(void)
{
	return &mrs_contexts[hash_ptr(current, MRS_SLOT_BITS)];
}

/* The task's context, or NULL; inline, for each probe asks. */
static inline struct mrs_context *mrs_context_find(void)
{
	struct mrs_context *ctx = mrs_context_home();

	if (READ_ONCE(ctx->task) == current)
		return ctx;
	if (likely(!atomic_read(&mrs_displaced)))
		return NULL;
	return mrs_context_find_displaced(ctx);
}

/* The task's innermost operation, or NULL. */
static inline struct mrs_frame *mrs_running(void)
{
	struct mrs_context *ctx = mrs_context_find();

	return ctx ? ctx->top : NULL;
}

/* The same if it is a registration, else NULL. */
static inline struct mrs_frame *mrs_reg_running(void)
{
	struct mrs_frame *f = mrs_running();

	return f && f->during == MRS_REG ? f : NULL;
}

/* The same if it is a deregistration, else NULL. */
static inline struct mrs_frame *mrs_dereg_running(void)
{
	struct mrs_frame *f = mrs_running();

	return f && f->during == MRS_DEREG ? f : NULL;
}

/* What all entries have in common; @f is the task's innermost operation. */
static __always_inline void mrs_entry(struct mrs_probe *p, struct mrs_frame *f,
				      u64 now, struct mrs_args args)
{
	if (p->during != MRS_ANYTHING) {
		if (!f || f->during != p->during)
			return;
		f->n_entry++;
	}
	mrs_hit(p);
	p->on_entry(p, f, now, args);
}

int mrs_context_init(void);
void mrs_context_exit(void);
void mrs_context_reset(void);
struct mrs_frame *mrs_frame_begin(u32 op, u32 entry, u32 stage, u64 now);
void mrs_frame_end(struct mrs_context *ctx, s32 ret, u64 now);
void mrs_frame_drop(struct mrs_context *ctx);
unsigned int mrs_context_in_flight(void);
unsigned int mrs_context_capacity(void);
u64 mrs_context_lost(void);

/* A boundary: what ran until @now belongs to the old stage. */
static inline void mrs_advance(struct mrs_frame *f, u32 stage, u64 now)
{
	f->gaps[f->stage] += now - f->last;
	f->last = now;
	f->stage = stage;
	f->rec.observed |= BIT(stage);
}

/* Handlers' exit: @f fails in its present stage, what follows is unwinding. */
static inline void mrs_fail(struct mrs_frame *f, u64 now)
{
	if (f->rec.failed_stage < 0)
		f->rec.failed_stage = f->stage;
	mrs_advance(f, MRSCOPE_REG_UNWIND, now);
}

bool mrs_record_listened(void);
void mrs_record_close(struct mrs_frame *f, s32 ret, u64 now);
int mrs_record_init(void);
void mrs_record_exit(void);
void mrs_record_reset(void);
u64 mrs_record_count(void);
/* Calls @show for the latest records, oldest first. */
void mrs_record_for_each(void (*show)(const struct mrs_record *r, void *arg),
			 void *arg);
const char *mrs_stage_name(u32 op, u32 stage);
u32 mrs_stage_count(u32 op);

struct mrs_filter {
	u64 tgid;		/* 0: any */
	u64 min_ns;
	char device[IB_DEVICE_NAME_MAX];	/* "": any */
};

extern struct mrs_filter mrs_filter;
extern bool mrs_keys;

/* ---- the system call that a task is in (context.c) ---- */

/* When (mrs_clock) this task entered ib_uverbs_ioctl(), or 0: not certain. */
u64 mrs_syscall_entry(void);
void mrs_syscall_mark(u64 now);

/* ---- driver knowledge (drivers.c) ---- */

/**
 * struct mrs_driver - what is known of a driver beyond its operations
 * @name: module
 * @purpose: what its library registers through reg_user_mr
 * @key_in_prepare: its key allocator runs right before the pin, so that the
 *	key's time is in "prepare" where its boundary is not armed
 * @table: the function that its table begins with, a boundary
 */
struct mrs_driver {
	const char *name;
	u8 purpose;
	bool key_in_prepare;
	const char *table;
};

const struct mrs_driver *mrs_driver_find(const char *name);
extern struct mrs_probe mrs_driver_probes[];
extern const unsigned int mrs_driver_nprobes;

/* ---- devices and statistics (stats.c) ---- */

int mrs_stats_init(void);
struct mrs_device *mrs_device_add(struct ib_device *dev);
const void *mrs_calibration_device(void);
struct mrs_device *mrs_device_find(const struct ib_device *dev);
void mrs_device_gone(const struct ib_device *dev);
void mrs_device_rename(const struct ib_device *dev);
bool mrs_device_named(const char *name);
const char *mrs_device_name(const struct mrs_device *d);
bool mrs_device_maps_by(const struct mrs_device *d, const struct device *dma);
bool mrs_device_real_dma(const struct mrs_device *d);
u8 mrs_device_purpose(const struct mrs_device *d);
bool mrs_device_key_in_prepare(const struct mrs_device *d);
bool mrs_any_real_dma(void);
bool mrs_any_virt_dma_return(void);
void mrs_stats_add(const struct mrs_record *r);
void mrs_stats_reset(void);
void mrs_stats_exit(void);

void mrs_stats_show(struct seq_file *m);
void mrs_histogram_show(struct seq_file *m);
void mrs_devices_show(struct seq_file *m);

/* ---- cost and self-test (selftest.c) ---- */

struct mrs_cost {
	u64 entry_ns;		/* an entry-only probe */
	u64 pair_ns;		/* an entry and its return */
	u64 record_ns;		/* beginning and closing a record */
};

extern struct mrs_cost mrs_cost;
extern struct task_struct *mrs_calibrating;
void mrs_calibrate(void);
/* Writes "pass" or "fail: why" into @why; returns 0 or -EIO. */
int mrs_selftest(char *why, size_t len);

/* ---- handlers, shared with the calibration and the tables ---- */

struct uverbs_attr_bundle;
bool mrs_by_ioctl(const struct uverbs_attr_bundle *attrs);

int mrs_reg_root_call(struct kretprobe_instance *ri, struct pt_regs *regs);
int mrs_reg_root_return(struct kretprobe_instance *ri, struct pt_regs *regs);
mrs_entry_handler_t mrs_umem_entry;
mrs_entry_handler_t mrs_reg_driver_entry;
mrs_entry_handler_t mrs_dereg_driver_entry;
void mrs_dereg_expect_abort(const void *mr);
mrs_entry_handler_t mrs_rereg_driver_entry;
mrs_entry_handler_t mrs_dmabuf_driver_entry;
mrs_entry_handler_t mrs_table_entry;
mrs_entry_handler_t mrs_key_entry;
int mrs_key_call(struct kretprobe_instance *ri, struct pt_regs *regs);
int mrs_key_return(struct kretprobe_instance *ri, struct pt_regs *regs);

extern struct mrs_probe mrs_reg_probes[];
extern const unsigned int mrs_reg_nprobes;
extern struct mrs_probe mrs_dereg_probes[];
extern const unsigned int mrs_dereg_nprobes;

/* ---- debugfs (debugfs.c) ---- */

int mrs_debugfs_init(void);
void mrs_debugfs_exit(void);

/* Arms what is wanted after @change has been made to the configuration. */
void mrs_reconfigure(void (*change)(const void *arg), const void *arg);
u64 mrs_outside_umems(void);

#endif /* MRSCOPE_OBSERVER_H */
