// SPDX-License-Identifier: GPL-2.0
/*
 * Regions that are paged on demand.  Nothing is pinned: the table begins
 * empty, a page comes in when the device touches it, and goes when the owner's
 * memory changes there, of which an MMU notifier tells.
 *
 * A page that the device is at is held by the mutex of the umem, which the
 * notifier takes too: the memory cannot change under a copy.
 */
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/sched/signal.h>
#include "compat.h"
#include "lab.h"
#include "trace.h"

/* What is prefetched at a time, without letting others go on. */
#define MRLAB_PREFETCH_BYTES	SZ_1M

static bool mrlab_odp_invalidate(struct mmu_interval_notifier *notifier,
				 const struct mmu_notifier_range *range,
				 unsigned long sequence)
{
	struct ib_umem_odp *odp = container_of(notifier, struct ib_umem_odp,
					       notifier);
	u64 page = BIT_ULL(odp->page_shift);
	struct mrlab_mr *mr;
	u64 begin, end, addr;
	unsigned int gone = 0;

	if (!mmu_notifier_range_blockable(range))
		return false;
	mutex_lock(&odp->umem_mutex);
	mmu_interval_set_seq(notifier, sequence);
	/* Not before the table is there: no page has come in, either. */
	mr = odp->private;
	if (mr) {
		begin = ALIGN_DOWN(max_t(u64, ib_umem_start(odp), range->start), page);
		end = min_t(u64, ib_umem_end(odp), range->end);
		for (addr = begin; addr < end; addr += page) {
			size_t index = (addr - ib_umem_start(odp)) >> odp->page_shift;
			u64 *entry = mrlab_table_entry(&mr->table, index);

			if (*entry)
				gone++;
			WRITE_ONCE(*entry, 0);
		}
		ib_umem_odp_unmap_dma_pages(odp, begin, end);
		if (gone) {
			atomic64_add(gone, &mr->pages_out);
			trace_mrlab_odp_invalidate(mr, begin, end - begin, gone);
		}
	}
	mutex_unlock(&odp->umem_mutex);
	return true;
}

static const struct mmu_interval_notifier_ops mrlab_odp_ops = {
	.invalidate = mrlab_odp_invalidate,
};

/*
 * The core has two words for each page from the beginning, and the table one:
 * of a region that is not pinned, nothing else limits them.
 */
#define MRLAB_ODP_PAGE_BYTES	(3 * sizeof(u64))
#define MRLAB_ODP_MEMORY_SHARE	8

static bool mrlab_odp_too_long(u64 length)
{
	u64 memory = (u64)totalram_pages() << PAGE_SHIFT;

	return (length >> PAGE_SHIFT) * MRLAB_ODP_PAGE_BYTES >
	       memory / MRLAB_ODP_MEMORY_SHARE;
}

int mrlab_odp_get(struct mrlab_mr *mr, struct ib_device *dev, u64 start)
{
	struct ib_umem_odp *odp;

	if (mrlab_odp_too_long(mr->length))
		return -ENOMEM;
	odp = ib_umem_odp_get(dev, start, mr->length, mr->access, &mrlab_odp_ops);
	if (IS_ERR(odp))
		return PTR_ERR(odp);
	mr->umem = &odp->umem;
	mr->on_demand = true;
	return 0;
}

/* The table is there: notifications have something to clear. */
void mrlab_odp_ready(struct mrlab_mr *mr)
{
	struct ib_umem_odp *odp = to_ib_umem_odp(mr->umem);

	mutex_lock(&odp->umem_mutex);
	odp->private = mr;
	mutex_unlock(&odp->umem_mutex);
}

/* Where an address of the region is in the owner's memory. */
static u64 mrlab_odp_user(const struct mrlab_mr *mr, u64 addr)
{
	return mr->start + (addr - mr->base);
}

/*
 * Bring pages of the owner's memory in, and enter them in the table.  With the
 * umem's mutex held where 0 is returned.
 */
static int mrlab_odp_page_in(struct mrlab_mr *mr, u64 user, u64 length,
			     bool write, bool fault)
{
	struct ib_umem_odp *odp = to_ib_umem_odp(mr->umem);
	size_t index = (user - ib_umem_start(odp)) >> odp->page_shift;
	int pages, i, in = 0;

	/* A change of the owner's memory, as by fork, may outlast the core's patience. */
	do {
		pages = ib_umem_odp_map_dma_and_lock(odp, user, length,
						     write ? MRLAB_ODP_WRITE : MRLAB_ODP_READ,
						     fault);
	} while (pages == -EBUSY && !fatal_signal_pending(current));
	if (pages < 0)
		return pages;
	for (i = 0; i < pages; i++) {
		bool writable;
		dma_addr_t dma = mrlab_odp_page(odp, index + i, &writable);
		u64 *entry = mrlab_table_entry(&mr->table, index + i);

		if (!dma)
			continue;
		in += !*entry;
		WRITE_ONCE(*entry, dma | MRLAB_PAGE_READ |
				   (writable ? MRLAB_PAGE_WRITE : 0));
	}
	atomic64_add(in, &mr->pages_in);
	return 0;
}

/*
 * As mrlab_table_find(), but the page is brought in if it is not there, and
 * stays until mrlab_odp_unlock().
 */
enum mrlab_refusal mrlab_odp_lock(struct mrlab_mr *mr, u64 addr, u64 right,
				  dma_addr_t *dma, size_t *left)
{
	struct ib_umem_odp *odp = to_ib_umem_odp(mr->umem);
	u64 begun;
	int err;

	mutex_lock(&odp->umem_mutex);
	if (mrlab_table_find(&mr->table, addr, right, dma, left))
		return MRLAB_OK;
	mutex_unlock(&odp->umem_mutex);

	begun = ktime_get_ns();
	/* For writing where that is allowed: it is likely to come. */
	err = mrlab_odp_page_in(mr, mrlab_odp_user(mr, addr), 1,
				odp->umem.writable, true);
	if (!err && !mrlab_table_find(&mr->table, addr, right, dma, left)) {
		mutex_unlock(&odp->umem_mutex);
		err = -EFAULT;
	}
	atomic64_inc(&mr->faults);
	trace_mrlab_odp_fault(mr, addr, right & MRLAB_PAGE_WRITE,
			      ktime_get_ns() - begun, err);
	return err ? MRLAB_NOT_PAGED_IN : MRLAB_OK;
}

void mrlab_odp_unlock(struct mrlab_mr *mr)
{
	mutex_unlock(&to_ib_umem_odp(mr->umem)->umem_mutex);
}

static int mrlab_prefetch(struct mrlab_mr *mr, u64 addr, u64 length,
			  bool write, bool fault)
{
	u64 done, some;
	int err;

	for (done = 0; done < length; done += some) {
		some = min_t(u64, length - done, MRLAB_PREFETCH_BYTES);
		if (fatal_signal_pending(current))
			return -EINTR;
		err = mrlab_odp_page_in(mr, mrlab_odp_user(mr, addr + done),
					some, write, fault);
		if (err)
			return err;
		mrlab_odp_unlock(mr);
		cond_resched();
	}
	atomic64_add(length, &mr->prefetched);
	return 0;
}

/* At once, even where it is not asked for: that is allowed. */
int mrlab_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice,
		    u32 flags, struct ib_sge *sg_list, u32 num_sge,
		    struct uverbs_attr_bundle *attrs)
{
	bool write = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	bool fault = advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	enum mrlab_refusal why;
	struct mrlab_mr *mr;
	int err = 0;
	u32 i;

	if (advice > IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -EOPNOTSUPP;
	if (flags & ~IB_UVERBS_ADVISE_MR_FLAG_FLUSH)
		return -EINVAL;
	for (i = 0; i < num_sge && !err; i++) {
		u64 offset;

		mr = mrlab_key_find(&to_mrlab(pd->device)->keys,
				    sg_list[i].lkey, &why);
		if (!mr)
			return -ENOENT;
		offset = sg_list[i].addr - mr->base;
		if (READ_ONCE(mr->pd) != pd)
			err = -EPERM;
		else if (!mr->on_demand || offset > mr->length ||
			 sg_list[i].length > mr->length - offset)
			err = -EINVAL;
		else if (write && !(READ_ONCE(mr->access) & IB_ACCESS_LOCAL_WRITE))
			err = -EPERM;
		else
			err = mrlab_prefetch(mr, sg_list[i].addr,
					     sg_list[i].length, write, fault);
		mrlab_mr_put(mr);
	}
	return err;
}
