/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What mrscope.ko and its readers agree on: the numbers that its trace events
 * carry.  The events describe their own layout (tracefs, events/mrscope/), so
 * readers find fields by name; only the meaning of the values is fixed here.
 */
#ifndef MRSCOPE_H
#define MRSCOPE_H

/*
 * Stages of a registration, in the order of time.  A stage is the gap between
 * two boundaries.  "syscall" is known only where ib_uverbs_ioctl was the way
 * in.  "library" and "return" lie in user space and are added by the reader.
 */
enum mrscope_reg_stage {
	MRSCOPE_REG_SYSCALL,	/* system call entry -> uverbs root */
	MRSCOPE_REG_UVERBS,	/* uverbs root -> driver entry */
	MRSCOPE_REG_PREPARE,	/* driver entry -> key or umem entry */
	MRSCOPE_REG_KEY,	/* the driver's key allocator, where named */
	MRSCOPE_REG_ACCOUNT,	/* umem entry -> first pin */
	MRSCOPE_REG_PIN,	/* inside pin_user_pages_fast() */
	MRSCOPE_REG_SG,		/* pin return -> next pin or DMA mapping */
	MRSCOPE_REG_DMA,	/* inside the DMA mapping call */
	MRSCOPE_REG_ATTACH,	/* dmabuf: stands for account, pin and sg */
	MRSCOPE_REG_TABLE,	/* DMA or umem return -> driver return */
	MRSCOPE_REG_PUBLISH,	/* driver return -> uobject commit */
	MRSCOPE_REG_UNWIND,	/* after a failure -> root return */
	MRSCOPE_REG_STAGES
};

#define MRSCOPE_REG_STAGE_NAMES						\
	"syscall", "uverbs", "prepare", "key", "account", "pin", "sg",	\
	"dma", "attach", "table", "publish", "unwind"

/* Stages of a deregistration, in the order of time. */
enum mrscope_dereg_stage {
	MRSCOPE_DEREG_SYSCALL,		/* system call entry -> uobject destroy */
	MRSCOPE_DEREG_UVERBS,		/* uobject destroy -> driver entry */
	MRSCOPE_DEREG_INVALIDATE,	/* driver entry -> umem release */
	MRSCOPE_DEREG_UNMAP,		/* inside the DMA unmapping call */
	MRSCOPE_DEREG_UNPIN,		/* umem release, less unmap */
	MRSCOPE_DEREG_FREE,		/* umem released -> root return */
	MRSCOPE_DEREG_STAGES
};

#define MRSCOPE_DEREG_STAGE_NAMES					\
	"syscall", "uverbs", "invalidate", "unmap", "unpin", "free"

/* What was asked for (field "op"). */
enum mrscope_op {
	MRSCOPE_OP_REG,
	MRSCOPE_OP_REG_DMABUF,
	MRSCOPE_OP_REREG,
	MRSCOPE_OP_DEREG,
	MRSCOPE_OPS
};

#define MRSCOPE_OP_NAMES "reg", "reg_dmabuf", "rereg", "dereg"

/* Who asked (field "entry"). */
enum mrscope_entry {
	MRSCOPE_ENTRY_IOCTL,	/* uverbs, by ioctl */
	MRSCOPE_ENTRY_WRITE,	/* uverbs, by write (legacy) */
	MRSCOPE_ENTRY_KERNEL,	/* a kernel consumer: ib_reg_user_mr() */
	MRSCOPE_ENTRY_CLEANUP,	/* dereg only: the file was closed (exit) */
	MRSCOPE_ENTRY_REMOVE,	/* dereg only: the device went away */
	MRSCOPE_ENTRY_ABORT,	/* dereg only: a registration was undone */
	MRSCOPE_ENTRY_UNKNOWN,
	MRSCOPE_ENTRIES
};

#define MRSCOPE_ENTRY_NAMES						\
	"ioctl", "write", "kernel", "cleanup", "remove", "abort", "unknown"

/* What the MR is for (field "purpose"). */
enum mrscope_purpose {
	MRSCOPE_PURPOSE_USER,		/* the program's own memory */
	MRSCOPE_PURPOSE_DRIVER,		/* a provider library's queue rings */
	MRSCOPE_PURPOSE_UNKNOWN,
	MRSCOPE_PURPOSES
};

#define MRSCOPE_PURPOSE_NAMES "user", "driver", "unknown"

/* Bits of the field "flags". */
#define MRSCOPE_F_INCOMPLETE	0x0001 /* a probe was missed meanwhile */
#define MRSCOPE_F_KEYS		0x0002 /* lkey/rkey carry the variant too */
#define MRSCOPE_F_ADDR		0x0004 /* addr and length are known */
#define MRSCOPE_F_ACCESS	0x0008 /* access is known */
#define MRSCOPE_F_LKEY		0x0010 /* lkey and rkey are known */
#define MRSCOPE_F_UMEM		0x0020 /* pages is known */
#define MRSCOPE_F_DMA		0x0040 /* dma_entries is known */
#define MRSCOPE_F_OWNER		0x0080 /* owner_tgid/owner_comm are known */
#define MRSCOPE_F_DEEP		0x0100 /* slow_ns, slow_calls, migrations */
#define MRSCOPE_F_NESTED	0x0200 /* ran inside another operation */
#define MRSCOPE_F_PIN		0x0400 /* pin_batches is known */
/* The commit was not observed: total_ns ends at the root's return, and publish
 * and the reader's "return" are merged.
 */
#define MRSCOPE_F_NO_COMMIT	0x0800
#define MRSCOPE_F_SG		0x1000 /* sg_entries is known */

/*
 * Fields of the events, all unsigned unless said otherwise, times in ns of
 * CLOCK_MONOTONIC.
 *
 * mrscope:mr_reg (operations reg, reg_dmabuf, rereg)
 *   seq            one number for each operation since the module was loaded
 *   start_ns       system call entry if known, else the root's entry
 *   total_ns       from start_ns to the commit (success) or root return
 *   addr, length, iova   valid with MRSCOPE_F_ADDR (a page size of user VA)
 *   op, entry, purpose, flags   u32, see above
 *   access         enum ib_access_flags, valid with MRSCOPE_F_ACCESS
 *   ret            s32: 0 or a negative errno
 *   failed_stage   s32: enum mrscope_reg_stage, -1 where nothing failed
 *   observed       bit i: stage i was told apart (0 then means: did not
 *                  happen); a clear bit means null
 *   merged         bit i: the time of stage i is contained in the nearest
 *                  earlier observed stage that took time
 *   NAME_ns        for each stage NAME, 0 unless observed.  They add up to
 *                  total_ns exactly.
 *   pages          pages pinned
 *   page_size      bytes, translation page size; 0: unknown
 *   pin_batches    calls of pin_user_pages_fast()
 *   sg_entries     scatter entries after coalescing neighbours (before: one
 *                  for each page)
 *   dma_entries    entries after the DMA mapping
 *   faults_minor, faults_major   of the task, during the operation
 *   nvcsw, nivcsw  voluntary and involuntary context switches, likewise
 *   slow_ns, slow_calls, migrations   with MRSCOPE_F_DEEP: time and calls of
 *                  the slow path of the pin; calls of migrate_pages()
 *   probe_cost_ns  calibrated cost of the probes inside total_ns, plus that
 *                  of writing the record
 *   lkey, rkey     index << 8; the variant only with MRSCOPE_F_KEYS
 *   tid, tgid      of the executing task, in the initial pid namespace
 *   vtid, vtgid    the same in its own pid namespace
 *   comm[16]       of the executing task
 *   device[64]     name of the ib_device, "" where unknown
 *
 * mrscope:mr_dereg: seq, start_ns, total_ns, addr, length, iova, op, entry,
 *   flags, ret, observed, merged, the stages, pages, sg_entries, nvcsw,
 *   nivcsw, probe_cost_ns, lkey, rkey, tid, tgid, vtid, vtgid, comm, device as
 *   above, and owner_tgid (initial pid namespace), owner_comm[16]: the process
 *   that registered.
 *
 * mrscope:mr_stage, one for each observed stage, before its mr_reg/mr_dereg:
 *   seq, op, stage (u32), name[12], ns, length, tid, device
 */

#endif /* MRSCOPE_H */
