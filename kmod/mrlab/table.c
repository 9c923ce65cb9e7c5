// SPDX-License-Identifier: GPL-2.0
/*
 * The translation table of a region: from its addresses to DMA addresses, a
 * page at a time.  Larger pages make a smaller table, but need memory that is
 * contiguous as the device sees it, and aligned alike on both sides.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_umem_odp.h>
#include <rdma/iter.h>
#include "lab.h"

static char *table_page = "best";
module_param(table_page, charp, 0444);
MODULE_PARM_DESC(table_page, "best or 4k");

static unsigned int table_levels;
module_param(table_levels, uint, 0444);
MODULE_PARM_DESC(table_levels, "1, 2, or 0: as many as the entries need (0)");

static unsigned long mrlab_page_sizes;

int mrlab_table_init(void)
{
	if (!strcmp(table_page, "best")) {
		mrlab_page_sizes = PAGE_MASK;
	} else if (!strcmp(table_page, "4k")) {
		mrlab_page_sizes = SZ_4K;
	} else {
		pr_err("table_page is best or 4k\n");
		return -EINVAL;
	}
	if (table_levels > 2) {
		pr_err("table_levels is 0, 1 or 2\n");
		return -EINVAL;
	}
	return 0;
}

/* The largest page that the region can be translated with. */
int mrlab_table_page_size(struct mrlab_mr *mr, unsigned long *page_size)
{
	/* Of a zero-based region the place in its page counts. */
	u64 addr = mr->access & IB_ZERO_BASED ? mr->start : mr->base;

	/* The umem itself says; both sides must be aligned alike. */
	if (mr->on_demand) {
		*page_size = BIT(to_ib_umem_odp(mr->umem)->page_shift);
		mr->umem->iova = mr->start;
		return (mr->start ^ addr) & (*page_size - 1) ? -EINVAL : 0;
	}
	*page_size = ib_umem_find_best_pgsz(mr->umem, mrlab_page_sizes, addr);
	return *page_size ? 0 : -EINVAL;
}

/* Nobody else is to be killed for a table. */
#define MRLAB_TABLE_GFP	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

static int mrlab_table_alloc(struct mrlab_table *table)
{
	size_t leaves = DIV_ROUND_UP(table->entries, MRLAB_LEAF_ENTRIES);
	size_t i;

	table->levels = table_levels ?: leaves > 1 ? 2 : 1;
	if (table->levels == 1) {
		table->flat = kvcalloc(table->entries, sizeof(u64),
				       MRLAB_TABLE_GFP);
		return table->flat ? 0 : -ENOMEM;
	}
	table->leaves = kvcalloc(leaves, sizeof(*table->leaves),
				 MRLAB_TABLE_GFP);
	if (!table->leaves)
		return -ENOMEM;
	for (i = 0; i < leaves; i++) {
		if (fatal_signal_pending(current))
			return -EINTR;
		table->leaves[i] = (u64 *)get_zeroed_page(MRLAB_TABLE_GFP);
		if (!table->leaves[i])
			return -ENOMEM;
		cond_resched();
	}
	return 0;
}

/* Of an incomplete one, too. */
void mrlab_table_free(struct mrlab_table *table)
{
	size_t i;

	if (table->levels == 2 && table->leaves)
		for (i = 0; i < DIV_ROUND_UP(table->entries, MRLAB_LEAF_ENTRIES); i++)
			free_page((unsigned long)table->leaves[i]);
	kvfree(table->flat);
	table->flat = NULL;
}

/* What is paged on demand begins with an empty one. */
int mrlab_table_build(struct mrlab_mr *mr, unsigned long page_size)
{
	struct mrlab_table *table = &mr->table;
	u64 rights = MRLAB_PAGE_READ;
	struct ib_block_iter block;
	size_t i = 0;
	int err;

	table->page_shift = __ffs(page_size);
	table->base = mr->base - (mr->umem->iova & (page_size - 1));
	table->entries = ib_umem_num_dma_blocks(mr->umem, page_size);
	err = mrlab_table_alloc(table);
	if (err || mr->on_demand)
		return err;

	if (mr->umem->writable)
		rights |= MRLAB_PAGE_WRITE;
	rdma_umem_for_each_dma_block(mr->umem, &block, page_size) {
		u64 *entry = mrlab_table_entry(table, i++);

		*entry = rdma_block_iter_dma_address(&block) | rights;
	}
	return 0;
}
