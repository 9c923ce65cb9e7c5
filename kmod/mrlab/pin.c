// SPDX-License-Identifier: GPL-2.0
/*
 * User memory for the device: counted against the owner's limit, pinned so
 * that it stays where it is, listed, and mapped for DMA.  This is what the
 * core's ib_umem_get() does in one call; here each step can be seen.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <rdma/ib_umem.h>
#include "compat.h"
#include "lab.h"
#include "trace.h"

static bool stock_umem;
module_param(stock_umem, bool, 0644);
MODULE_PARM_DESC(stock_umem, "pin by the core's ib_umem_get(), to compare (N)");

/* Pages that are pinned count against MEMLOCK, as a count of the whole mm. */
static int mrlab_account(struct ib_umem *umem)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	unsigned long pages = ib_umem_num_pages(umem);

	if (atomic64_add_return(pages, &umem->owning_mm->pinned_vm) <= limit ||
	    capable(CAP_IPC_LOCK))
		return 0;
	atomic64_sub(pages, &umem->owning_mm->pinned_vm);
	return -ENOMEM;
}

static void mrlab_unaccount(struct ib_umem *umem)
{
	atomic64_sub(ib_umem_num_pages(umem), &umem->owning_mm->pinned_vm);
}

/* In batches of what a page of pointers can hold; neighbours become one entry. */
static int mrlab_pin_pages(struct mrlab_mr *mr, struct mrlab_clock *clock)
{
	struct ib_umem *umem = mr->umem;
	unsigned long left = ib_umem_num_pages(umem);
	unsigned long addr = umem->address & PAGE_MASK;
	unsigned int flags = umem->writable ? MRLAB_PIN_WRITE : MRLAB_PIN_READ;
	struct page **pages;
	int pinned;
	int err = 0;

	pages = (struct page **)__get_free_page(GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	mrlab_clock_lap(clock, MRLAB_CHECK);
	while (left) {
		cond_resched();
		pinned = pin_user_pages_fast(addr,
					     min_t(unsigned long, left,
						   PAGE_SIZE / sizeof(*pages)),
					     flags, pages);
		mrlab_clock_lap(clock, MRLAB_PIN);
		if (pinned < 0) {
			err = pinned;
			break;
		}
		addr += (unsigned long)pinned << PAGE_SHIFT;
		left -= pinned;
		err = sg_alloc_append_table_from_pages(&umem->sgt_append, pages,
						       pinned, 0,
						       (unsigned long)pinned << PAGE_SHIFT,
						       ib_dma_max_seg_size(umem->ibdev),
						       left, GFP_KERNEL);
		if (err) {
			unpin_user_pages_dirty_lock(pages, pinned, false);
			break;
		}
		mrlab_clock_lap(clock, MRLAB_SCATTER);
	}
	free_page((unsigned long)pages);
	return err;
}

static void mrlab_unpin_pages(struct ib_umem *umem, bool dirty)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_sg(&umem->sgt_append.sgt, sg, i) {
		unpin_user_page_range_dirty_lock(sg_page(sg),
						 DIV_ROUND_UP(sg->length, PAGE_SIZE),
						 dirty && umem->writable);
		if (!(i % 1024))
			cond_resched();
	}
	sg_free_append_table(&umem->sgt_append);
}

static struct ib_umem *mrlab_umem_alloc(struct mrlab_mr *mr,
					struct ib_device *dev, u64 start)
{
	struct ib_umem *umem = kzalloc(sizeof(*umem), GFP_KERNEL);

	if (!umem)
		return NULL;
	umem->ibdev = dev;
	umem->address = start;
	umem->iova = start;
	umem->length = mr->length;
	umem->writable = ib_access_writable(mr->access);
	umem->owning_mm = current->mm;
	mmgrab(umem->owning_mm);
	return umem;
}

static void mrlab_umem_free(struct ib_umem *umem)
{
	mmdrop(umem->owning_mm);
	kfree(umem);
}

static int mrlab_pin_stock(struct mrlab_mr *mr, struct ib_device *dev, u64 start,
			   struct mrlab_clock *clock)
{
	struct ib_umem *umem;

	mrlab_clock_lap(clock, MRLAB_CHECK);
	umem = mrlab_ib_umem_get(dev, start, mr->length, mr->access);
	mrlab_clock_lap(clock, MRLAB_PIN);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	clock->stage_ns[MRLAB_SCATTER] = MRLAB_NS_UNKNOWN;
	clock->stage_ns[MRLAB_MAP] = MRLAB_NS_UNKNOWN;
	mr->umem = umem;
	return 0;
}

int mrlab_pin(struct mrlab_mr *mr, struct ib_device *dev, u64 start,
	      struct mrlab_clock *clock)
{
	struct ib_umem *umem;
	int err;

	if (READ_ONCE(stock_umem))
		return mrlab_pin_stock(mr, dev, start, clock);
	if (!can_do_mlock())
		return -EPERM;
	umem = mrlab_umem_alloc(mr, dev, start);
	if (!umem)
		return -ENOMEM;
	err = mrlab_account(umem);
	if (err)
		goto err_free;
	mr->umem = umem;
	err = mrlab_pin_pages(mr, clock);
	if (err)
		goto err_unpin;
	err = dma_map_sgtable(dev->dma_device, &umem->sgt_append.sgt,
			      DMA_BIDIRECTIONAL, MRLAB_DMA_ATTRS);
	if (err)
		goto err_unpin;
	mrlab_clock_lap(clock, MRLAB_MAP);
	mr->own_umem = true;
	return 0;

err_unpin:
	mrlab_unpin_pages(umem, false);
	mrlab_unaccount(umem);
err_free:
	mrlab_umem_free(umem);
	mr->umem = NULL;
	return err;
}

/* Of any region: what others have pinned or attached, they release. */
void mrlab_unpin(struct mrlab_mr *mr)
{
	struct ib_umem *umem = mr->umem;
	u64 begun = ktime_get_ns();

	if (mr->own_umem) {
		dma_unmap_sgtable(umem->ibdev->dma_device,
				  &umem->sgt_append.sgt, DMA_BIDIRECTIONAL, MRLAB_DMA_ATTRS);
		mr->unmap_ns = ktime_get_ns() - begun;
		mrlab_unpin_pages(umem, true);
		mrlab_unaccount(umem);
		mrlab_umem_free(umem);
	} else {
		ib_umem_release(umem);
	}
	mr->unpin_ns = ktime_get_ns() - begun - mr->unmap_ns;
	mr->umem = NULL;
}
