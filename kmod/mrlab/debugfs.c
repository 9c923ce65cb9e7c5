// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/mrlab/DEVICE: what the device holds at the moment, for
 * people.  Root only: tables show DMA addresses.
 */
#include <linux/debugfs.h>
#include <linux/dma-mapping.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>
#include <rdma/ib_umem.h>
#include "lab.h"

/* Of each table, the rest is counted. */
#define MRLAB_SHOWN_ENTRIES	64

static struct dentry *mrlab_root;

static const char * const mrlab_reasons[MRLAB_REFUSALS] = {
	[MRLAB_OK] = "ok",
	[MRLAB_NO_KEY] = "no_key",
	[MRLAB_STALE_KEY] = "stale_key",
	[MRLAB_INVALIDATED] = "invalidated",
	[MRLAB_OTHER_PD] = "other_pd",
	[MRLAB_BOUNDS] = "bounds",
	[MRLAB_MR_ACCESS] = "mr_access",
	[MRLAB_QP_ACCESS] = "qp_access",
	[MRLAB_ALIGNMENT] = "alignment",
	[MRLAB_NOT_PAGED_IN] = "not_paged_in",
	[MRLAB_NO_TRANSLATION] = "no_translation",
};

static const char * const mrlab_opcodes[MRLAB_OPCODES] = {
	[IB_WR_RDMA_WRITE] = "write",
	[IB_WR_RDMA_WRITE_WITH_IMM] = "write_with_imm",
	[IB_WR_SEND] = "send",
	[IB_WR_SEND_WITH_IMM] = "send_with_imm",
	[IB_WR_SEND_WITH_INV] = "send_with_inv",
	[IB_WR_RDMA_READ] = "read",
	[IB_WR_ATOMIC_CMP_AND_SWP] = "compare_and_swap",
	[IB_WR_ATOMIC_FETCH_AND_ADD] = "fetch_and_add",
};

static const char * const mrlab_states[] = {
	"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
};

static int device_show(struct seq_file *seq, void *unused)
{
	struct mrlab_dev *dev = seq->private;

	seq_printf(seq, "parent %s (%s)\n", dev_name(dev->parent),
		   dev->edu ? "edu, a PCI bus master" : "a platform device");
	seq_printf(seq, "iommu %s\n", dev->domain ? "translates" :
		   "none: DMA addresses are physical");
	seq_printf(seq, "dma_mask 0x%llx\n", dma_get_mask(dev->parent));
	seq_printf(seq, "max_segment %u bytes\n", dma_get_max_seg_size(dev->parent));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(device);

static int pds_show(struct seq_file *seq, void *unused)
{
	struct mrlab_dev *dev = seq->private;
	struct mrlab_pd *pd;
	unsigned long number;

	seq_puts(seq, "pd owner\n");
	/* The core frees them at once: not by RCU. */
	xa_lock(&dev->pds);
	xa_for_each(&dev->pds, number, pd)
		seq_printf(seq, "%lu %s-%d\n", number, pd->comm, pd->tgid);
	xa_unlock(&dev->pds);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(pds);

static int qps_show(struct seq_file *seq, void *unused)
{
	struct mrlab_dev *dev = seq->private;
	struct mrlab_qp *qp;
	unsigned long number;

	seq_puts(seq, "qp type state peer pd sends receives refused owner\n");
	xa_lock(&dev->qps);
	xa_for_each(&dev->qps, number, qp)
		seq_printf(seq, "%lu %s %s %u %u %u/%u %u/%u %lld %s-%d\n", number,
			   qp->ibqp.qp_type == IB_QPT_RC ? "RC" : "UC",
			   mrlab_states[READ_ONCE(qp->state)],
			   qp->attr.dest_qp_num, to_mrlab_pd(qp->ibqp.pd)->number,
			   mrlab_queue_count(&qp->sq), qp->sq.size,
			   mrlab_queue_count(&qp->rq), qp->rq.size,
			   atomic64_read(&qp->refused), qp->comm, qp->tgid);
	xa_unlock(&dev->qps);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(qps);

/* The next region from @index on, with a reference. */
static struct mrlab_mr *mrlab_next_mr(struct mrlab_dev *dev, unsigned long *index)
{
	struct mrlab_mr *mr;

	rcu_read_lock();
	mr = xa_find(&dev->keys.regions, index, ULONG_MAX, XA_PRESENT);
	while (mr && !refcount_inc_not_zero(&mr->users))
		mr = xa_find_after(&dev->keys.regions, index, ULONG_MAX,
				   XA_PRESENT);
	rcu_read_unlock();
	return mr;
}

static const char *mrlab_kind(const struct mrlab_mr *mr)
{
	return mr->on_demand ? "on_demand" :
	       mr->umem->is_dmabuf ? "dmabuf" :
	       mr->own_umem ? "pinned" : "stock";
}

static void mrlab_show_mr(struct seq_file *seq, struct mrlab_mr *mr)
{
	seq_printf(seq, "0x%x %u %s %llu 0x%llx %zu %lu %zu %u %lld %lld/%lld/%lld %s-%d\n",
		   mr->key >> 8, to_mrlab_pd(mr->pd)->number, mrlab_kind(mr),
		   mr->length, mr->base, ib_umem_num_pages(mr->umem),
		   BIT(mr->table.page_shift), mr->table.entries,
		   mr->table.levels, atomic64_read(&mr->refused),
		   atomic64_read(&mr->faults), atomic64_read(&mr->pages_in),
		   atomic64_read(&mr->pages_out), mr->comm, mr->tgid);
}

static int mrs_show(struct seq_file *seq, void *unused)
{
	struct mrlab_dev *dev = seq->private;
	struct mrlab_mr *mr;
	unsigned long index;

	seq_puts(seq, "key_index pd memory length base pages page_size entries levels refused faults/in/out owner\n");
	for (index = 0; (mr = mrlab_next_mr(dev, &index)); index++) {
		mrlab_show_mr(seq, mr);
		mrlab_mr_put(mr);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(mrs);

static void mrlab_show_table(struct seq_file *seq, struct mrlab_mr *mr)
{
	const struct mrlab_table *table = &mr->table;
	size_t i, empty = 0;

	seq_printf(seq, "key_index 0x%x: %zu pages of %lu bytes from 0x%llx, %u level%s\n",
		   mr->key >> 8, table->entries, BIT(table->page_shift),
		   table->base, table->levels, table->levels > 1 ? "s" : "");
	for (i = 0; i < table->entries && i < MRLAB_SHOWN_ENTRIES; i++) {
		u64 entry = READ_ONCE(*mrlab_table_entry(table, i));

		if (!entry) {
			empty++;
			continue;
		}
		seq_printf(seq, "  %zu 0x%llx %s%s\n", i,
			   entry & ~(u64)MRLAB_PAGE_FLAGS,
			   entry & MRLAB_PAGE_READ ? "r" : "-",
			   entry & MRLAB_PAGE_WRITE ? "w" : "-");
	}
	if (empty)
		seq_printf(seq, "  %zu of these not mapped\n", empty);
	if (i < table->entries)
		seq_printf(seq, "  and %zu more\n", table->entries - i);
}

static int tables_show(struct seq_file *seq, void *unused)
{
	struct mrlab_dev *dev = seq->private;
	struct mrlab_mr *mr;
	unsigned long index;

	for (index = 0; (mr = mrlab_next_mr(dev, &index)); index++) {
		mrlab_show_table(seq, mr);
		mrlab_mr_put(mr);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(tables);

static int refused_show(struct seq_file *seq, void *unused)
{
	struct mrlab_dev *dev = seq->private;
	int why;

	for (why = MRLAB_NO_KEY; why < MRLAB_REFUSALS; why++)
		seq_printf(seq, "%s %lld\n", mrlab_reasons[why],
			   atomic64_read(&dev->refused[why]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(refused);

static int engine_show(struct seq_file *seq, void *unused)
{
	struct mrlab_dev *dev = seq->private;
	const struct mrlab_engine_counters *engine = &dev->engine;
	int opcode;

	for (opcode = 0; opcode < MRLAB_OPCODES; opcode++)
		if (mrlab_opcodes[opcode])
			seq_printf(seq, "%s %lld\n", mrlab_opcodes[opcode],
				   atomic64_read(&engine->requests[opcode]));
	seq_printf(seq, "bytes %lld\n", atomic64_read(&engine->bytes));
	seq_printf(seq, "busy_ns %lld\n", atomic64_read(&engine->busy_ns));
	seq_printf(seq, "rnr_waits %lld\n", atomic64_read(&engine->rnr_waits));
	seq_printf(seq, "retries %lld\n", atomic64_read(&engine->retries));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(engine);

/*
 * "TO FROM LENGTH": the bus master copies, by DMA addresses, whatever is or is
 * not there.  Only where an IOMMU stands in between: it is what is being shown.
 */
static ssize_t dma_copy_write(struct file *file, const char __user *buffer,
			      size_t count, loff_t *position)
{
	struct mrlab_dev *dev = file_inode(file)->i_private;
	u64 to, from;
	u32 length;
	char line[80];
	int err;

	if (!dev->edu || !dev->domain)
		return -EOPNOTSUPP;
	if (count >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, buffer, count))
		return -EFAULT;
	line[count] = 0;
	if (sscanf(line, "%llx %llx %u", &to, &from, &length) != 3 ||
	    length < 1 || length > SZ_1M)
		return -EINVAL;
	err = mrlab_edu_copy(dev->edu, to, from, length);
	return err ?: count;
}

static const struct file_operations dma_copy_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = dma_copy_write,
};

void mrlab_debugfs_create(struct mrlab_dev *dev)
{
	struct dentry *dir = debugfs_create_dir(dev_name(&dev->ibdev.dev),
						mrlab_root);

	dev->debugfs = dir;
	debugfs_create_file("device", 0400, dir, dev, &device_fops);
	debugfs_create_file("pds", 0400, dir, dev, &pds_fops);
	debugfs_create_file("qps", 0400, dir, dev, &qps_fops);
	debugfs_create_file("mrs", 0400, dir, dev, &mrs_fops);
	debugfs_create_file("tables", 0400, dir, dev, &tables_fops);
	debugfs_create_file("refused", 0400, dir, dev, &refused_fops);
	debugfs_create_file("engine", 0400, dir, dev, &engine_fops);
	debugfs_create_file("dma_copy", 0200, dir, dev, &dma_copy_fops);
}

/* Waits for those who read. */
void mrlab_debugfs_remove(struct mrlab_dev *dev)
{
	debugfs_remove(dev->debugfs);
}

void mrlab_debugfs_init(void)
{
	mrlab_root = debugfs_create_dir("mrlab", NULL);
}

void mrlab_debugfs_exit(void)
{
	debugfs_remove(mrlab_root);
}
