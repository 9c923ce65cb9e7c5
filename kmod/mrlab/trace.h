/* SPDX-License-Identifier: GPL-2.0 */
/* The trace events of mrlab.  A key is shown by its index alone. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM mrlab

#if !defined(MRLAB_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define MRLAB_TRACE_H

#include <linux/tracepoint.h>
#include "lab.h"

/* MRLAB_NS_UNKNOWN is printed as -1. */
TRACE_EVENT(mrlab_reg_mr,
	    TP_PROTO(const struct mrlab_mr *mr, u64 total_ns, int ret),
	    TP_ARGS(mr, total_ns, ret),
	    TP_STRUCT__entry(__array(char, device, IB_DEVICE_NAME_MAX)
			     __array(char, comm, TASK_COMM_LEN)
			     __field(u64, start)
			     __field(u64, length)
			     __field(u64, total_ns)
			     __field(u64, check_ns)
			     __field(u64, pin_ns)
			     __field(u64, scatter_ns)
			     __field(u64, map_ns)
			     __field(u64, attach_ns)
			     __field(u64, page_size_ns)
			     __field(u64, table_ns)
			     __field(u64, key_ns)
			     __field(u64, publish_ns)
			     __field(u64, table_entries)
			     __field(u64, sg_entries)
			     __field(u32, dma_entries)
			     __field(u32, page_shift)
			     __field(u32, levels)
			     __field(u32, key_index)
			     __field(u32, access)
			     __field(s32, ret)
			     __field(s32, tgid)),
	    TP_fast_assign(strscpy(__entry->device, dev_name(&mr->ibmr.device->dev),
				   sizeof(__entry->device));
			   memcpy(__entry->comm, mr->comm, sizeof(__entry->comm));
			   __entry->start = mr->start;
			   __entry->length = mr->length;
			   __entry->total_ns = total_ns;
			   __entry->check_ns = mr->cost.stage_ns[MRLAB_CHECK];
			   __entry->pin_ns = mr->cost.stage_ns[MRLAB_PIN];
			   __entry->scatter_ns = mr->cost.stage_ns[MRLAB_SCATTER];
			   __entry->map_ns = mr->cost.stage_ns[MRLAB_MAP];
			   __entry->attach_ns = mr->cost.stage_ns[MRLAB_ATTACH];
			   __entry->page_size_ns = mr->cost.stage_ns[MRLAB_PAGE_SIZE];
			   __entry->table_ns = mr->cost.stage_ns[MRLAB_TABLE];
			   __entry->key_ns = mr->cost.stage_ns[MRLAB_KEY];
			   __entry->publish_ns = mr->cost.stage_ns[MRLAB_PUBLISH];
			   __entry->table_entries = mr->cost.table_entries;
			   __entry->sg_entries = mr->cost.sg_entries;
			   __entry->dma_entries = mr->cost.dma_entries;
			   __entry->page_shift = mr->cost.page_shift;
			   __entry->levels = mr->cost.levels;
			   __entry->key_index = mr->key >> 8;
			   __entry->access = mr->access;
			   __entry->ret = ret;
			   __entry->tgid = mr->tgid;),
	    TP_printk("%s %s-%d start=0x%llx length=%llu access=0x%x ret=%d total_ns=%llu check_ns=%lld pin_ns=%lld scatter_ns=%lld map_ns=%lld attach_ns=%lld page_size_ns=%lld table_ns=%lld key_ns=%lld publish_ns=%lld sg_entries=%llu dma_entries=%u table_entries=%llu page_shift=%u levels=%u key_index=0x%x",
		      __entry->device, __entry->comm, __entry->tgid,
		      __entry->start, __entry->length, __entry->access,
		      __entry->ret, __entry->total_ns, __entry->check_ns,
		      __entry->pin_ns, __entry->scatter_ns, __entry->map_ns,
		      __entry->attach_ns, __entry->page_size_ns,
		      __entry->table_ns, __entry->key_ns, __entry->publish_ns,
		      __entry->sg_entries, __entry->dma_entries,
		      __entry->table_entries, __entry->page_shift,
		      __entry->levels, __entry->key_index)
);

TRACE_EVENT(mrlab_dereg_mr,
	    TP_PROTO(const struct mrlab_mr *mr, u64 withdraw_ns, u64 total_ns),
	    TP_ARGS(mr, withdraw_ns, total_ns),
	    TP_STRUCT__entry(__array(char, device, IB_DEVICE_NAME_MAX)
			     __array(char, comm, TASK_COMM_LEN)
			     __field(u64, length)
			     __field(u64, total_ns)
			     __field(u64, withdraw_ns)
			     __field(u64, unmap_ns)
			     __field(u64, unpin_ns)
			     __field(u32, key_index)
			     __field(s32, tgid)),
	    TP_fast_assign(strscpy(__entry->device, dev_name(&mr->ibmr.device->dev),
				   sizeof(__entry->device));
			   memcpy(__entry->comm, mr->comm, sizeof(__entry->comm));
			   __entry->length = mr->length;
			   __entry->total_ns = total_ns;
			   __entry->withdraw_ns = withdraw_ns;
			   __entry->unmap_ns = mr->unmap_ns;
			   __entry->unpin_ns = mr->unpin_ns;
			   __entry->key_index = mr->key >> 8;
			   __entry->tgid = mr->tgid;),
	    TP_printk("%s owner=%s-%d length=%llu total_ns=%llu withdraw_ns=%llu unmap_ns=%llu unpin_ns=%llu key_index=0x%x",
		      __entry->device, __entry->comm, __entry->tgid,
		      __entry->length, __entry->total_ns, __entry->withdraw_ns,
		      __entry->unmap_ns, __entry->unpin_ns, __entry->key_index)
);

TRACE_EVENT(mrlab_refused,
	    TP_PROTO(const struct mrlab_qp *qp, u32 key, u32 why),
	    TP_ARGS(qp, key, why),
	    TP_STRUCT__entry(__field(u32, qp_num)
			     __field(u32, key_index)
			     __field(u32, why)),
	    TP_fast_assign(__entry->qp_num = qp->ibqp.qp_num;
			   __entry->key_index = key >> 8;
			   __entry->why = why;),
	    TP_printk("qp=%u key_index=0x%x why=%s", __entry->qp_num,
		      __entry->key_index,
		      __print_symbolic(__entry->why, { 1, "no_key" },
				       { 2, "stale_key" }, { 3, "invalidated" },
				       { 4, "other_pd" }, { 5, "bounds" },
				       { 6, "mr_access" }, { 7, "qp_access" },
				       { 8, "alignment" },
				       { 9, "not_paged_in" },
				       { 10, "no_translation" }))
);

TRACE_EVENT(mrlab_odp_fault,
	    TP_PROTO(const struct mrlab_mr *mr, u64 addr, bool write, u64 ns,
		     int ret),
	    TP_ARGS(mr, addr, write, ns, ret),
	    TP_STRUCT__entry(__field(u64, addr)
			     __field(u64, ns)
			     __field(u32, key_index)
			     __field(s32, ret)
			     __field(bool, write)),
	    TP_fast_assign(__entry->addr = addr;
			   __entry->ns = ns;
			   __entry->key_index = mr->key >> 8;
			   __entry->ret = ret;
			   __entry->write = write;),
	    TP_printk("key_index=0x%x addr=0x%llx write=%d ns=%llu ret=%d",
		      __entry->key_index, __entry->addr, __entry->write,
		      __entry->ns, __entry->ret)
);

TRACE_EVENT(mrlab_odp_invalidate,
	    TP_PROTO(const struct mrlab_mr *mr, u64 start, u64 length, u32 pages),
	    TP_ARGS(mr, start, length, pages),
	    TP_STRUCT__entry(__field(u64, start)
			     __field(u64, length)
			     __field(u32, pages)
			     __field(u32, key_index)),
	    TP_fast_assign(__entry->start = start;
			   __entry->length = length;
			   __entry->pages = pages;
			   __entry->key_index = mr->key >> 8;),
	    TP_printk("key_index=0x%x start=0x%llx length=%llu pages=%u",
		      __entry->key_index, __entry->start, __entry->length,
		      __entry->pages)
);

#endif /* MRLAB_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
