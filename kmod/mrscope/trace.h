/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The trace events.  Their fields are documented in mrscope.h, and are found
 * by name: adding one is no break, renaming one is.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM mrscope

#if !defined(MRSCOPE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define MRSCOPE_TRACE_H

#include <linux/tracepoint.h>
#include "observer.h"

/* enum mrscope_op: by number, as user space cannot resolve our names. */
#define MRS_OP_PRINT(op)						\
	__print_symbolic(op, { 0, "reg" }, { 1, "reg_dmabuf" },		\
			 { 2, "rereg" }, { 3, "dereg" })

TRACE_EVENT(mr_reg,
	    TP_PROTO(const struct mrs_record *r),
	    TP_ARGS(r),
	    TP_STRUCT__entry(__field(u64, seq)
			     __field(u64, start_ns)
			     __field(u64, total_ns)
			     __field(u64, addr)
			     __field(u64, length)
			     __field(u64, iova)
			     __field(u64, syscall_ns)
			     __field(u64, uverbs_ns)
			     __field(u64, prepare_ns)
			     __field(u64, key_ns)
			     __field(u64, account_ns)
			     __field(u64, pin_ns)
			     __field(u64, sg_ns)
			     __field(u64, dma_ns)
			     __field(u64, attach_ns)
			     __field(u64, table_ns)
			     __field(u64, publish_ns)
			     __field(u64, unwind_ns)
			     __field(u64, pages)
			     __field(u64, page_size)
			     __field(u64, slow_ns)
			     __field(u64, probe_cost_ns)
			     __field(u32, op)
			     __field(u32, entry)
			     __field(u32, purpose)
			     __field(u32, flags)
			     __field(u32, access)
			     __field(s32, ret)
			     __field(s32, failed_stage)
			     __field(u32, observed)
			     __field(u32, merged)
			     __field(u32, pin_batches)
			     __field(u32, sg_entries)
			     __field(u32, dma_entries)
			     __field(u32, faults_minor)
			     __field(u32, faults_major)
			     __field(u32, nvcsw)
			     __field(u32, nivcsw)
			     __field(u32, slow_calls)
			     __field(u32, migrations)
			     __field(u32, lkey)
			     __field(u32, rkey)
			     __field(s32, tid)
			     __field(s32, tgid)
			     __field(s32, vtid)
			     __field(s32, vtgid)
			     __array(char, comm, TASK_COMM_LEN)
			     __array(char, device, IB_DEVICE_NAME_MAX)),
	    TP_fast_assign(__entry->seq = r->seq;
			   __entry->start_ns = r->start_ns;
			   __entry->total_ns = r->total_ns;
			   __entry->addr = r->addr;
			   __entry->length = r->length;
			   __entry->iova = r->iova;
			   __entry->syscall_ns = r->ns[MRSCOPE_REG_SYSCALL];
			   __entry->uverbs_ns = r->ns[MRSCOPE_REG_UVERBS];
			   __entry->prepare_ns = r->ns[MRSCOPE_REG_PREPARE];
			   __entry->key_ns = r->ns[MRSCOPE_REG_KEY];
			   __entry->account_ns = r->ns[MRSCOPE_REG_ACCOUNT];
			   __entry->pin_ns = r->ns[MRSCOPE_REG_PIN];
			   __entry->sg_ns = r->ns[MRSCOPE_REG_SG];
			   __entry->dma_ns = r->ns[MRSCOPE_REG_DMA];
			   __entry->attach_ns = r->ns[MRSCOPE_REG_ATTACH];
			   __entry->table_ns = r->ns[MRSCOPE_REG_TABLE];
			   __entry->publish_ns = r->ns[MRSCOPE_REG_PUBLISH];
			   __entry->unwind_ns = r->ns[MRSCOPE_REG_UNWIND];
			   __entry->pages = r->pages;
			   __entry->page_size = r->page_size;
			   __entry->slow_ns = r->slow_ns;
			   __entry->probe_cost_ns = r->probe_cost_ns;
			   __entry->op = r->op;
			   __entry->entry = r->entry;
			   __entry->purpose = r->purpose;
			   __entry->flags = r->flags;
			   __entry->access = r->access;
			   __entry->ret = r->ret;
			   __entry->failed_stage = r->failed_stage;
			   __entry->observed = r->observed;
			   __entry->merged = r->merged;
			   __entry->pin_batches = r->pin_batches;
			   __entry->sg_entries = r->sg_entries;
			   __entry->dma_entries = r->dma_entries;
			   __entry->faults_minor = r->faults_minor;
			   __entry->faults_major = r->faults_major;
			   __entry->nvcsw = r->nvcsw;
			   __entry->nivcsw = r->nivcsw;
			   __entry->slow_calls = r->slow_calls;
			   __entry->migrations = r->migrations;
			   __entry->lkey = r->lkey;
			   __entry->rkey = r->rkey;
			   __entry->tid = r->tid;
			   __entry->tgid = r->tgid;
			   __entry->vtid = r->vtid;
			   __entry->vtgid = r->vtgid;
			   memcpy(__entry->comm, r->comm, TASK_COMM_LEN);
			   memcpy(__entry->device, mrs_device_name(r->dev),
				  IB_DEVICE_NAME_MAX);),
	    TP_printk("%s %s ret=%d addr=0x%llx length=%llu total_ns=%llu uverbs_ns=%llu prepare_ns=%llu key_ns=%llu account_ns=%llu pin_ns=%llu sg_ns=%llu dma_ns=%llu table_ns=%llu publish_ns=%llu unwind_ns=%llu pages=%llu faults=%u/%u failed_stage=%d observed=0x%x merged=0x%x",
		      __entry->device, MRS_OP_PRINT(__entry->op), __entry->ret,
		      __entry->addr, __entry->length, __entry->total_ns,
		      __entry->uverbs_ns, __entry->prepare_ns, __entry->key_ns,
		      __entry->account_ns, __entry->pin_ns, __entry->sg_ns,
		      __entry->dma_ns, __entry->table_ns, __entry->publish_ns,
		      __entry->unwind_ns, __entry->pages, __entry->faults_minor,
		      __entry->faults_major, __entry->failed_stage,
		      __entry->observed, __entry->merged)
);

TRACE_EVENT(mr_dereg,
	    TP_PROTO(const struct mrs_record *r),
	    TP_ARGS(r),
	    TP_STRUCT__entry(__field(u64, seq)
			     __field(u64, start_ns)
			     __field(u64, total_ns)
			     __field(u64, addr)
			     __field(u64, length)
			     __field(u64, iova)
			     __field(u64, syscall_ns)
			     __field(u64, uverbs_ns)
			     __field(u64, invalidate_ns)
			     __field(u64, unmap_ns)
			     __field(u64, unpin_ns)
			     __field(u64, free_ns)
			     __field(u64, pages)
			     __field(u64, probe_cost_ns)
			     __field(u32, op)
			     __field(u32, entry)
			     __field(u32, purpose)
			     __field(u32, flags)
			     __field(s32, ret)
			     __field(u32, observed)
			     __field(u32, merged)
			     __field(u32, sg_entries)
			     __field(u32, nvcsw)
			     __field(u32, nivcsw)
			     __field(u32, lkey)
			     __field(u32, rkey)
			     __field(s32, tid)
			     __field(s32, tgid)
			     __field(s32, vtid)
			     __field(s32, vtgid)
			     __field(s32, owner_tgid)
			     __array(char, comm, TASK_COMM_LEN)
			     __array(char, owner_comm, TASK_COMM_LEN)
			     __array(char, device, IB_DEVICE_NAME_MAX)),
	    TP_fast_assign(__entry->seq = r->seq;
			   __entry->start_ns = r->start_ns;
			   __entry->total_ns = r->total_ns;
			   __entry->addr = r->addr;
			   __entry->length = r->length;
			   __entry->iova = r->iova;
			   __entry->syscall_ns = r->ns[MRSCOPE_DEREG_SYSCALL];
			   __entry->uverbs_ns = r->ns[MRSCOPE_DEREG_UVERBS];
			   __entry->invalidate_ns = r->ns[MRSCOPE_DEREG_INVALIDATE];
			   __entry->unmap_ns = r->ns[MRSCOPE_DEREG_UNMAP];
			   __entry->unpin_ns = r->ns[MRSCOPE_DEREG_UNPIN];
			   __entry->free_ns = r->ns[MRSCOPE_DEREG_FREE];
			   __entry->pages = r->pages;
			   __entry->probe_cost_ns = r->probe_cost_ns;
			   __entry->op = r->op;
			   __entry->entry = r->entry;
			   __entry->purpose = r->purpose;
			   __entry->flags = r->flags;
			   __entry->ret = r->ret;
			   __entry->observed = r->observed;
			   __entry->merged = r->merged;
			   __entry->sg_entries = r->sg_entries;
			   __entry->nvcsw = r->nvcsw;
			   __entry->nivcsw = r->nivcsw;
			   __entry->lkey = r->lkey;
			   __entry->rkey = r->rkey;
			   __entry->tid = r->tid;
			   __entry->tgid = r->tgid;
			   __entry->vtid = r->vtid;
			   __entry->vtgid = r->vtgid;
			   __entry->owner_tgid = r->owner_tgid;
			   memcpy(__entry->comm, r->comm, TASK_COMM_LEN);
			   memcpy(__entry->owner_comm, r->owner_comm, TASK_COMM_LEN);
			   memcpy(__entry->device, mrs_device_name(r->dev),
				  IB_DEVICE_NAME_MAX);),
	    TP_printk("%s dereg ret=%d addr=0x%llx length=%llu total_ns=%llu uverbs_ns=%llu invalidate_ns=%llu unmap_ns=%llu unpin_ns=%llu free_ns=%llu pages=%llu owner=%s/%d observed=0x%x merged=0x%x",
		      __entry->device, __entry->ret, __entry->addr,
		      __entry->length, __entry->total_ns, __entry->uverbs_ns,
		      __entry->invalidate_ns, __entry->unmap_ns,
		      __entry->unpin_ns, __entry->free_ns, __entry->pages,
		      __entry->owner_comm, __entry->owner_tgid,
		      __entry->observed, __entry->merged)
);

#define MRS_STAGE_NAME_LEN	12

TRACE_EVENT(mr_stage,
	    TP_PROTO(const struct mrs_record *r, u32 stage),
	    TP_ARGS(r, stage),
	    TP_STRUCT__entry(__field(u64, seq)
			     __field(u64, ns)
			     __field(u64, length)
			     __field(u32, op)
			     __field(u32, stage)
			     __field(s32, tid)
			     __array(char, name, MRS_STAGE_NAME_LEN)
			     __array(char, device, IB_DEVICE_NAME_MAX)),
	    TP_fast_assign(__entry->seq = r->seq;
			   __entry->ns = r->ns[stage];
			   __entry->length = r->length;
			   __entry->op = r->op;
			   __entry->stage = stage;
			   __entry->tid = r->tid;
			   strscpy_pad(__entry->name,
				       mrs_stage_name(r->op, stage),
				   MRS_STAGE_NAME_LEN);
			   memcpy(__entry->device, mrs_device_name(r->dev),
				  IB_DEVICE_NAME_MAX);),
	    TP_printk("%s %s %s ns=%llu length=%llu seq=%llu", __entry->device,
		      MRS_OP_PRINT(__entry->op), __entry->name, __entry->ns,
		      __entry->length, __entry->seq)
);

#endif /* MRSCOPE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
