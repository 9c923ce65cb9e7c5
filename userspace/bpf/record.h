/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the BPF programs write and the library reads: one struct for each entry
 * of the ring buffer.  Both are built together, so that it may change at will.
 */
#ifndef MRSCOPE_BPF_RECORD_H_
#define MRSCOPE_BPF_RECORD_H_

#include <linux/types.h>

enum mrs_bpf_kind {
	MRS_BPF_OPERATION,
	MRS_BPF_FORK,
	MRS_BPF_EXEC,
	MRS_BPF_EXIT,
	MRS_BPF_DEVICE_NAME,
};

/* The functions that a program can be attached to, and that separate stages. */
enum mrs_bpf_boundary {
	MRS_BPF_IOCTL,
	MRS_BPF_ROOT,
	MRS_BPF_DRIVER,
	MRS_BPF_KEY,
	MRS_BPF_UMEM,
	MRS_BPF_PIN,
	MRS_BPF_DMA,
	MRS_BPF_DESTROY,
	MRS_BPF_DEREG,
	MRS_BPF_RELEASE,
	MRS_BPF_BOUNDARIES
};

#define MRS_BPF_STAGES		12
#define MRS_BPF_COMM		16
#define MRS_BPF_NO_DEVICE	~0U
#define MRS_BPF_OP_COST		~0U	/* op of what is no operation */

/* Fields as in kmod/include/mrscope.h; stages that were entered: observed. */
struct mrs_bpf_operation {
	/* 0 when it begins. */
	__u64 ns[MRS_BPF_STAGES];
	__u64 pages;
	__u32 flags;
	__u32 pin_batches;
	/* Set when it begins. */
	__u64 start_ns;
	__u32 op;
	__u32 entry;
	__u32 observed;
	__u32 stage;		/* the last one */
	__s32 failed_stage;
	/* Valid with the flag of their kind. */
	__u32 access;
	__u64 addr;
	__u64 length;
	__u64 iova;
	__u32 sg_entries;
	__u32 dma_entries;
	__u32 lkey;
	__u32 rkey;
	__s32 owner_tgid;
	char owner_comm[MRS_BPF_COMM];
	/* Set when it ends. */
	__s32 ret;
	__u32 faults_minor;
	__u32 faults_major;
	__u32 nvcsw;
	__u32 nivcsw;
	__s32 tid;
	__s32 tgid;
	__s32 vtid;
	__s32 vtgid;
	__u32 device;		/* its number, or MRS_BPF_NO_DEVICE */
	char comm[MRS_BPF_COMM];
};

#define MRS_BPF_ZEROED		__builtin_offsetof(struct mrs_bpf_operation, start_ns)
#define MRS_BPF_COPIED		__builtin_offsetof(struct mrs_bpf_operation, owner_tgid)
#define MRS_BPF_COPIED_DEREG	__builtin_offsetof(struct mrs_bpf_operation, ret)

/* Not through the ring buffer. */
struct mrs_bpf_shared {
	__u64 lost;		/* operations and events */
	/* Of the last calibration: from one program's time to the next one's. */
	__u64 begin_ns;		/* behind the program that begins an operation */
	__u64 entry_ns;		/* behind one at an entry */
	__u64 record_ns;	/* behind the one that writes the record */
	__u64 end_ns;		/* when that began */
	__s32 tgid;		/* whose it was */
	__u32 unused;
};

struct mrs_bpf_event {
	__u32 kind;
	__s32 pid;		/* exec and exit: of the task; fork: of the child;
				 * device name: the device's number
				 */
	__s32 parent;		/* fork */
	__u32 unused;
	__u64 time_ns;
	union {
		struct mrs_bpf_operation operation;
		char text[64];	/* device name; exec: file name, maybe not its end */
	};
};

#endif /* MRSCOPE_BPF_RECORD_H_ */
