// SPDX-License-Identifier: GPL-2.0
/*
 * The device's way to memory: an address of a region becomes a DMA address by
 * the region's table, and that a page by the IOMMU, as for a real device.
 * Nothing else in the data path touches the memory of users.
 */
#include <linux/dma-direct.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include "lab.h"

/* Messages up to this size are not left half done. */
#define MRLAB_STOP_BYTES	SZ_64K

static bool bus_master;
module_param(bus_master, bool, 0644);
MODULE_PARM_DESC(bus_master, "let the edu device carry messages between pinned regions (N)");

/* Bytes that follow each other, of one page as the device sees it. */
struct mrlab_span {
	struct mrlab_mr *locked;	/* on demand: to be unlocked */
	dma_addr_t dma;
	void *va;
	size_t length;
};

/* All memory is in the kernel's address space, but for what is taken out of it. */
static_assert(IS_ENABLED(CONFIG_64BIT));

/* Pages of memfd_secret() are taken out; on demand, they can be had. */
static bool mrlab_is_there(const void *va)
{
	u8 byte;

	return !get_kernel_nofault(byte, (const u8 *)va);
}

/* What is at a DMA address, and for how long it goes on there. */
static void *mrlab_dma_to_virt(struct mrlab_dev *dev, dma_addr_t dma,
			       size_t *length)
{
	phys_addr_t phys;

	if (dev->domain) {
		phys = iommu_iova_to_phys(dev->domain, dma);
		/* Neighbours for the device need not be neighbours. */
		*length = min_t(size_t, *length, PAGE_SIZE - offset_in_page(dma));
		if (!phys)
			return NULL;
	} else {
		phys = dma_to_phys(dev->parent, dma);
	}
	if (!pfn_valid(PHYS_PFN(phys)))
		return NULL;
	return page_address(pfn_to_page(PHYS_PFN(phys))) + offset_in_page(phys);
}

/* Whole pages by what the kernel copies them with. */
static void mrlab_move(void *to, const void *from, size_t length)
{
	if (!PAGE_ALIGNED((uintptr_t)to | (uintptr_t)from | length)) {
		memmove(to, from, length);
		return;
	}
	for (; length; length -= PAGE_SIZE, to += PAGE_SIZE, from += PAGE_SIZE)
		copy_page(to, (void *)from);
}

static void mrlab_span_close(struct mrlab_span *span)
{
	if (span->locked)
		mrlab_odp_unlock(span->locked);
}

static bool mrlab_span_open(struct mrlab_qp *qp,
			    const struct mrlab_segment *segment, u32 offset,
			    u64 right, struct mrlab_span *span)
{
	u64 addr = segment->addr + offset;
	enum mrlab_refusal why = MRLAB_OK;
	struct mrlab_mr *mr = segment->mr;

	span->locked = NULL;
	span->dma = 0;
	span->length = segment->length - offset;
	if (!mr) {
		span->va = (void *)(uintptr_t)addr;
		return true;
	}
	if (mr->on_demand) {
		why = mrlab_odp_lock(mr, addr, right, &span->dma, &span->length);
		if (why == MRLAB_OK)
			span->locked = mr;
	} else if (!mrlab_table_find(&mr->table, addr, right, &span->dma,
				     &span->length)) {
		why = MRLAB_MR_ACCESS;
	}
	if (why == MRLAB_OK) {
		span->length = min_t(size_t, span->length,
				     segment->length - offset);
		span->va = mrlab_dma_to_virt(to_mrlab(qp->ibqp.device),
					     span->dma, &span->length);
		if (span->va && (!mr->on_demand || mrlab_is_there(span->va)))
			return true;
		why = MRLAB_NO_TRANSLATION;
		mrlab_span_close(span);
	}
	mrlab_refused(qp, mr, segment->key, why);
	return false;
}

/* Where in a message, which is a list of segments. */
struct mrlab_cursor {
	const struct mrlab_message *message;
	u32 index;
	u32 offset;
};

static const struct mrlab_segment *mrlab_at(struct mrlab_cursor *cursor)
{
	while (cursor->offset == cursor->message->segment[cursor->index].length) {
		cursor->index++;
		cursor->offset = 0;
	}
	return &cursor->message->segment[cursor->index];
}

static bool mrlab_pages_stay(const struct mrlab_segment *segment)
{
	return segment->mr && !segment->mr->on_demand;
}

/*
 * Copy what is contiguous on both sides, at most @want bytes.  Two pages on
 * demand are never held at once, as taking one in may need the other to go:
 * such bytes go through a page of the queue pair.
 */
static ssize_t mrlab_copy_some(struct mrlab_qp *qp, struct mrlab_cursor *to,
			       struct mrlab_cursor *from, u64 want,
			       const struct mrlab_message **culprit)
{
	const struct mrlab_segment *source = mrlab_at(from);
	const struct mrlab_segment *target = mrlab_at(to);
	struct mrlab_dev *dev = to_mrlab(qp->ibqp.device);
	struct mrlab_span in, out;
	size_t length;
	int err = 0;

	*culprit = from->message;
	if (!mrlab_span_open(qp, source, from->offset, MRLAB_PAGE_READ, &in))
		return -EFAULT;
	length = min_t(u64, in.length, want);
	if (in.locked && target->mr && target->mr->on_demand) {
		length = min_t(size_t, length, PAGE_SIZE);
		memcpy(qp->bounce, in.va, length);
		mrlab_span_close(&in);
		in.locked = NULL;
		in.va = qp->bounce;
	}
	*culprit = to->message;
	if (!mrlab_span_open(qp, target, to->offset, MRLAB_PAGE_WRITE, &out)) {
		mrlab_span_close(&in);
		return -EFAULT;
	}
	length = min(length, out.length);
	if (READ_ONCE(bus_master) && dev->edu && mrlab_pages_stay(source) &&
	    mrlab_pages_stay(target))
		err = mrlab_edu_copy(dev->edu, out.dma, in.dma, length);
	else
		mrlab_move(out.va, in.va, length);
	mrlab_span_close(&out);
	mrlab_span_close(&in);
	from->offset += length;
	to->offset += length;
	return err ?: length;
}

/* Of a message under way, a region that is being deregistered, if any. */
static bool mrlab_withdrawn(struct mrlab_qp *qp,
			    const struct mrlab_message *message)
{
	const struct mrlab_segment *segment;
	u32 i;

	for (i = 0; i < message->count; i++) {
		segment = &message->segment[i];
		if (segment->mr && READ_ONCE(segment->mr->withdrawn)) {
			mrlab_refused(qp, segment->mr, segment->key, MRLAB_NO_KEY);
			return true;
		}
	}
	return false;
}

/* Whoever takes something away from a message waits for the end of it. */
static int mrlab_go_on(struct mrlab_qp *qp, const struct mrlab_message *to,
		       const struct mrlab_message *from,
		       const struct mrlab_message **culprit)
{
	if (!mrlab_qp_sends(qp))
		return -ECANCELED;
	if (!mrlab_qp_responds(qp->peer) || READ_ONCE(qp->peer->stop))
		return -EPIPE;
	*culprit = from;
	if (mrlab_withdrawn(qp, from))
		return -EFAULT;
	*culprit = to;
	return mrlab_withdrawn(qp, to) ? -EFAULT : 0;
}

/*
 * Copy between two messages, each of which has @length bytes or more.  0, or
 * -EFAULT and which of them could not be accessed, or -ECANCELED where the
 * queue pair is no longer to go on, or -EPIPE where its peer is not, or what
 * the bus master failed with.
 */
int mrlab_copy(struct mrlab_qp *qp, const struct mrlab_message *to,
	       const struct mrlab_message *from, u64 length,
	       const struct mrlab_message **culprit)
{
	struct mrlab_cursor target = { .message = to };
	struct mrlab_cursor source = { .message = from };
	u64 begun = length;
	ssize_t done;
	int err;

	while (length) {
		if (begun - length >= MRLAB_STOP_BYTES) {
			err = mrlab_go_on(qp, to, from, culprit);
			if (err)
				return err;
		}
		done = mrlab_copy_some(qp, &target, &source, length, culprit);
		if (done < 0)
			return done;
		length -= done;
		cond_resched();
	}
	return 0;
}

/*
 * On the word itself, against the CPU's atomic operations as well.  A region
 * whose addresses begin with zero may lie askew: -EINVAL where the address is
 * aligned, and the word is not.
 */
int mrlab_atomic(struct mrlab_qp *qp, const struct mrlab_segment *target,
		 const struct mrlab_wqe *wqe, u64 *original)
{
	struct mrlab_span span;
	int err = 0;

	if (!mrlab_span_open(qp, target, 0, MRLAB_PAGE_WRITE, &span))
		return -EFAULT;
	if (!IS_ALIGNED((uintptr_t)span.va, sizeof(u64))) {
		mrlab_refused(qp, target->mr, target->key, MRLAB_ALIGNMENT);
		err = -EINVAL;
	} else if (wqe->opcode == IB_WR_ATOMIC_CMP_AND_SWP) {
		*original = cmpxchg((u64 *)span.va, wqe->compare_add, wqe->swap);
	} else {
		*original = atomic64_fetch_add(wqe->compare_add,
					       (atomic64_t *)span.va);
	}
	mrlab_span_close(&span);
	return err;
}
