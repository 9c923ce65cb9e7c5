// SPDX-License-Identifier: GPL-2.0
/*
 * Devices, and for each the counts and latency histograms of its operations.
 *
 * A device's entry outlives the device: the last deregistrations come after
 * the removal of its clients, and its figures are still wanted then.
 */
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "observer.h"

#define MRS_DEVICES	32
#define MRS_SHARDS	8	/* of the counters, so that CPUs rarely meet */
#define MRS_SUB_BITS	3	/* eight buckets for each power of two */
#define MRS_BUCKETS	320	/* up to 2^41 ns, more than half an hour */
#define MRS_ERRNOS	134	/* above: counted as the last */
#define MRS_TOTAL	MRS_STAGES	/* the row behind those of the stages */

/* What is counted together: reg and reg_dmabuf, rereg, dereg. */
enum { MRS_K_REG, MRS_K_REREG, MRS_K_DEREG, MRS_KINDS };

struct mrs_shard {
	atomic64_t count;
	atomic64_t bytes;
	atomic64_t max_ns[MRS_STAGES + 1];
	atomic_t hist[MRS_STAGES + 1][MRS_BUCKETS];
};

struct mrs_stats {
	struct mrs_shard shard[MRS_SHARDS];
	atomic_t errors[MRS_ERRNOS];
};

struct mrs_device {
	const void *ib;			/* compared only, never followed */
	const void *dma;		/* its DMA device, likewise */
	char name[IB_DEVICE_NAME_MAX];
	char driver_name[MODULE_NAME_LEN];
	const struct mrs_driver *driver;
	bool real_dma;
	bool table_known;		/* a boundary tells where it begins */
	bool hidden;
	bool gone;
	struct mrs_stats *stats[MRS_KINDS];
};

static struct mrs_device mrs_devices[MRS_DEVICES];
static unsigned int mrs_ndevices;
static const char mrs_no_name[IB_DEVICE_NAME_MAX];

static const struct {
	const char *name;
	u32 op;
} mrs_kinds[MRS_KINDS] = {
	{ "reg", MRSCOPE_OP_REG },
	{ "rereg", MRSCOPE_OP_REREG },
	{ "dereg", MRSCOPE_OP_DEREG },
};

struct mrs_device *mrs_device_find(const struct ib_device *dev)
{
	/* Pairs with the release in mrs_device_new(): they are set up. */
	unsigned int i, n = smp_load_acquire(&mrs_ndevices);

	for (i = 0; i < n; i++)
		if (READ_ONCE(mrs_devices[i].ib) == dev)
			return &mrs_devices[i];
	return NULL;
}

/* A buffer of IB_DEVICE_NAME_MAX bytes. */
const char *mrs_device_name(const struct mrs_device *d)
{
	return d ? d->name : mrs_no_name;
}

/* Is @dma what @d maps through?  Taken for true where @d is not known. */
bool mrs_device_maps_by(const struct mrs_device *d, const struct device *dma)
{
	return !d || d->dma == dma;
}

bool mrs_device_real_dma(const struct mrs_device *d)
{
	return d && d->real_dma;
}

u8 mrs_device_purpose(const struct mrs_device *d)
{
	return d && d->driver ? d->driver->purpose : MRSCOPE_PURPOSE_UNKNOWN;
}

bool mrs_device_key_in_prepare(const struct mrs_device *d)
{
	return d && d->driver && d->driver->key_in_prepare;
}

bool mrs_any_real_dma(void)
{
	unsigned int i;

	for (i = 0; i < mrs_ndevices; i++)
		if (mrs_devices[i].real_dma)
			return true;
	return false;
}

/* Is there a software device of which only the return tells the end of it? */
bool mrs_any_virt_dma_return(void)
{
	unsigned int i;

	for (i = 0; i < mrs_ndevices; i++) {
		const struct mrs_device *d = &mrs_devices[i];

		if (!d->hidden && !d->gone && !d->real_dma && !d->table_known)
			return true;
	}
	return false;
}

static struct mrs_device *mrs_device_new(const char *name)
{
	struct mrs_device *d;
	unsigned int k;

	if (mrs_ndevices == MRS_DEVICES)
		return NULL;
	d = &mrs_devices[mrs_ndevices];
	for (k = 0; k < MRS_KINDS; k++) {
		d->stats[k] = kvzalloc(sizeof(*d->stats[k]), GFP_KERNEL);
		if (!d->stats[k])
			goto free;
	}
	strscpy(d->name, name, sizeof(d->name));
	/* Pairs with the acquire in mrs_device_find(). */
	smp_store_release(&mrs_ndevices, mrs_ndevices + 1);
	return d;
free:
	while (k--)
		kvfree(d->stats[k]);
	return NULL;
}

/* The entry of a device that is gone, for another one; its figures go, too. */
static struct mrs_device *mrs_device_reuse(const char *name)
{
	unsigned int i, k;

	for (i = 0; i < mrs_ndevices; i++) {
		struct mrs_device *d = &mrs_devices[i];

		if (!d->gone)
			continue;
		WRITE_ONCE(d->ib, NULL);
		for (k = 0; k < MRS_KINDS; k++)
			memset(d->stats[k], 0, sizeof(struct mrs_stats));
		strscpy_pad(d->name, name, sizeof(d->name));
		return d;
	}
	return NULL;
}

/*
 * Returns the entry of @dev: an old one if the name was seen before, else a new
 * one, else that of a device that is gone.
 */
struct mrs_device *mrs_device_add(struct ib_device *dev)
{
	const char *name = dev_name(&dev->dev);
	struct mrs_device *d = NULL;
	unsigned int i;

	lockdep_assert_held(&mrs_lock);
	for (i = 0; i < mrs_ndevices; i++) {
		/* The memory of a device that is gone may be used again. */
		if (mrs_devices[i].ib == dev)
			WRITE_ONCE(mrs_devices[i].ib, NULL);
		if (!mrs_devices[i].hidden && !strcmp(mrs_devices[i].name, name))
			d = &mrs_devices[i];
	}
	if (!d)
		d = mrs_device_new(name);
	if (!d)
		d = mrs_device_reuse(name);
	if (!d)
		return NULL;
	d->gone = false;
	d->dma = dev->dma_device;
	strscpy(d->driver_name,
		dev->ops.owner ? module_name(dev->ops.owner) : "unknown",
		sizeof(d->driver_name));
	d->driver = mrs_driver_find(d->driver_name);
	d->real_dma = !ib_uses_virt_dma(dev);
	d->table_known = d->driver && d->driver->table &&
			 mrs_symbol_known(d->driver->table);
	WRITE_ONCE(d->ib, dev);
	return d;
}

static struct mrs_device *mrs_device_known(const struct ib_device *dev)
{
	lockdep_assert_held(&mrs_lock);
	return mrs_device_find(dev);
}

/* Its last deregistrations are still to come. */
void mrs_device_gone(const struct ib_device *dev)
{
	struct mrs_device *d = mrs_device_known(dev);

	if (d)
		d->gone = true;
}

/* A handler may read a mixture of the names, but never beyond the end. */
void mrs_device_rename(const struct ib_device *dev)
{
	struct mrs_device *d = mrs_device_known(dev);

	if (d)
		strscpy_pad(d->name, dev_name(&dev->dev), sizeof(d->name));
}

bool mrs_device_named(const char *name)
{
	unsigned int i;

	lockdep_assert_held(&mrs_lock);
	for (i = 0; i < mrs_ndevices; i++)
		if (!mrs_devices[i].hidden && !strcmp(mrs_devices[i].name, name))
			return true;
	return false;
}

/* A device that the calibration's records belong to; it is never shown. */
const void *mrs_calibration_device(void)
{
	return mrs_devices;
}

int mrs_stats_init(void)
{
	struct mrs_device *d = mrs_device_new("");

	if (!d)
		return -ENOMEM;
	d->hidden = true;
	d->ib = mrs_calibration_device();
	return 0;
}

void mrs_stats_exit(void)
{
	unsigned int i, k;

	for (i = 0; i < mrs_ndevices; i++)
		for (k = 0; k < MRS_KINDS; k++)
			kvfree(mrs_devices[i].stats[k]);
}

void mrs_stats_reset(void)
{
	unsigned int i, k;

	lockdep_assert_held(&mrs_lock);
	for (i = 0; i < mrs_ndevices; i++)
		for (k = 0; k < MRS_KINDS; k++)
			memset(mrs_devices[i].stats[k], 0,
			       sizeof(struct mrs_stats));
}

static __always_inline unsigned int mrs_bucket(u64 ns)
{
	unsigned int shift;

	/* One bit more, so that the shift is never negative. */
	shift = __fls(ns | BIT(MRS_SUB_BITS)) - MRS_SUB_BITS;
	if (unlikely(shift >= (MRS_BUCKETS >> MRS_SUB_BITS) - 1))
		return MRS_BUCKETS - 1;
	return (shift << MRS_SUB_BITS) + (ns >> shift);
}

/* The largest value that falls into bucket @b. */
static u64 mrs_bucket_limit(unsigned int b)
{
	unsigned int shift;

	if (b < BIT(MRS_SUB_BITS))
		return b;
	shift = (b >> MRS_SUB_BITS) - 1;
	return (((u64)BIT(MRS_SUB_BITS) + (b & (BIT(MRS_SUB_BITS) - 1)) + 1)
		<< shift) - 1;
}

static __always_inline void mrs_count(struct mrs_shard *sh, unsigned int row, u64 ns)
{
	s64 max = atomic64_read(&sh->max_ns[row]);

	atomic_inc(&sh->hist[row][mrs_bucket(ns)]);
	while (unlikely((s64)ns > max) &&
	       !atomic64_try_cmpxchg(&sh->max_ns[row], &max, ns))
		;
}

static unsigned int mrs_kind(u32 op)
{
	return op == MRSCOPE_OP_DEREG ? MRS_K_DEREG :
	       op == MRSCOPE_OP_REREG ? MRS_K_REREG : MRS_K_REG;
}

void mrs_stats_add(const struct mrs_record *r)
{
	struct mrs_stats *st;
	struct mrs_shard *sh;
	unsigned int s;

	if (!r->dev)
		return;
	st = r->dev->stats[mrs_kind(r->op)];
	if (r->ret) {
		/* A driver may return anything. */
		atomic_inc(&st->errors[min(abs(r->ret), MRS_ERRNOS - 1)]);
		return;
	}

	sh = &st->shard[raw_smp_processor_id() % MRS_SHARDS];
	atomic64_inc(&sh->count);
	atomic64_add(r->length, &sh->bytes);
	mrs_count(sh, MRS_TOTAL, r->total_ns);
	for (s = 0; s < MRS_STAGES; s++)
		if (r->ns[s])
			mrs_count(sh, s, r->ns[s]);
}

/* ---- reading ---- */

static u64 mrs_hist_sum(const struct mrs_stats *st, unsigned int row,
			unsigned int bucket)
{
	unsigned int i;
	u64 sum = 0;

	for (i = 0; i < MRS_SHARDS; i++)
		sum += atomic_read(&st->shard[i].hist[row][bucket]);
	return sum;
}

/* The value that @percent of the row's samples do not exceed. */
static u64 mrs_percentile(const struct mrs_stats *st, unsigned int row,
			  u64 total, unsigned int percent, u64 max)
{
	u64 want = DIV_ROUND_UP_ULL(total * percent, 100), seen = 0;
	unsigned int b;

	for (b = 0; b < MRS_BUCKETS; b++) {
		seen += mrs_hist_sum(st, row, b);
		if (seen >= want)
			return min(mrs_bucket_limit(b), max);
	}
	return max;
}

static void mrs_row_show(struct seq_file *m, const struct mrs_stats *st,
			 unsigned int row, const char *name)
{
	u64 total = 0, max = 0;
	unsigned int i;

	for (i = 0; i < MRS_BUCKETS; i++)
		total += mrs_hist_sum(st, row, i);
	if (!total)
		return;
	for (i = 0; i < MRS_SHARDS; i++)
		max = max_t(u64, max, atomic64_read(&st->shard[i].max_ns[row]));
	seq_printf(m, "  %-12s %12llu %12llu %12llu\n", name,
		   mrs_percentile(st, row, total, 50, max),
		   mrs_percentile(st, row, total, 99, max), max);
}

static void mrs_kind_show(struct seq_file *m, const struct mrs_device *d,
			  unsigned int kind)
{
	const struct mrs_stats *st = d->stats[kind];
	u64 count = 0, bytes = 0, errors = 0;
	unsigned int i;

	for (i = 0; i < MRS_SHARDS; i++) {
		count += atomic64_read(&st->shard[i].count);
		bytes += atomic64_read(&st->shard[i].bytes);
	}
	for (i = 0; i < MRS_ERRNOS; i++)
		errors += atomic_read(&st->errors[i]);
	if (!count && !errors)
		return;

	seq_printf(m, "%s %s count %llu bytes %llu errors %llu", d->name,
		   mrs_kinds[kind].name, count, bytes, errors);
	for (i = 0; i < MRS_ERRNOS; i++)
		if (atomic_read(&st->errors[i]))
			seq_printf(m, " errno%u=%u", i,
				   atomic_read(&st->errors[i]));
	seq_putc(m, '\n');
	if (!count)
		return;
	seq_printf(m, "  %-12s %12s %12s %12s\n", "stage", "p50_ns", "p99_ns",
		   "max_ns");
	for (i = 0; i < mrs_stage_count(mrs_kinds[kind].op); i++)
		mrs_row_show(m, st, i, mrs_stage_name(mrs_kinds[kind].op, i));
	mrs_row_show(m, st, MRS_TOTAL, "total");
}

typedef void (*mrs_kind_show_t)(struct seq_file *m, const struct mrs_device *d,
				unsigned int kind);

static void mrs_show_kinds(struct seq_file *m, mrs_kind_show_t show)
{
	unsigned int i, k;

	lockdep_assert_held(&mrs_lock);
	for (i = 0; i < mrs_ndevices; i++)
		for (k = 0; k < MRS_KINDS && !mrs_devices[i].hidden; k++)
			show(m, &mrs_devices[i], k);
}

void mrs_stats_show(struct seq_file *m)
{
	mrs_show_kinds(m, mrs_kind_show);
}

static void mrs_kind_histogram(struct seq_file *m, const struct mrs_device *d,
			       unsigned int kind)
{
	const struct mrs_stats *st = d->stats[kind];
	unsigned int row, b;
	u64 n;

	for (row = 0; row <= MRS_TOTAL; row++) {
		if (row != MRS_TOTAL && row >= mrs_stage_count(mrs_kinds[kind].op))
			continue;
		for (b = 0; b < MRS_BUCKETS; b++) {
			n = mrs_hist_sum(st, row, b);
			if (!n)
				continue;
			seq_printf(m, "%s %s %s le_ns %llu count %llu\n",
				   d->name, mrs_kinds[kind].name,
				   row == MRS_TOTAL ? "total" :
				   mrs_stage_name(mrs_kinds[kind].op, row),
				   mrs_bucket_limit(b), n);
		}
	}
}

void mrs_histogram_show(struct seq_file *m)
{
	mrs_show_kinds(m, mrs_kind_histogram);
}

void mrs_devices_show(struct seq_file *m)
{
	unsigned int i;

	lockdep_assert_held(&mrs_lock);
	for (i = 0; i < mrs_ndevices; i++)
		if (!mrs_devices[i].hidden)
			seq_printf(m, "device %s %s\n", mrs_devices[i].name,
				   mrs_devices[i].driver_name);
}
