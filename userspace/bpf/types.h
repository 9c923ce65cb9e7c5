/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The fields that the BPF programs read.  Their places are found when a program
 * is loaded, in the types (BTF) of the running kernel and its modules, so that
 * only names count here.
 */
#ifndef MRSCOPE_BPF_TYPES_H_
#define MRSCOPE_BPF_TYPES_H_

#define READ __attribute__((preserve_access_index))

typedef __u8 u8;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;

/* The running kernel's value of an enumerator. */
#define VALUE(type, name)	((int)bpf_core_enum_value(enum type, name))

enum ib_mr_type {
	IB_MR_TYPE_USER = 3,
};

enum rdma_remove_reason {
	RDMA_REMOVE_DESTROY,
	RDMA_REMOVE_CLOSE,
	RDMA_REMOVE_ABORT = 3,
};

struct upid {
	int nr;
} READ;

struct pid {
	unsigned int level;
	struct upid numbers[1];
} READ;

struct task_struct {
	int pid;
	int tgid;
	unsigned long min_flt;
	unsigned long maj_flt;
	unsigned long nvcsw;
	unsigned long nivcsw;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	char comm[16];
} READ;

struct linux_binprm {
	const char *filename;
} READ;

struct kobject {
	const char *name;
} READ;

struct device {
	struct kobject kobj;
} READ;

struct ib_device {
	struct device *dma_device;
	struct device dev;
} READ;

struct ib_pd {
	struct ib_device *device;
} READ;

struct ib_uobject {
	void *object;
} READ;

struct rdma_restrack_entry {
	struct task_struct *task;
} READ;

struct ib_mr {
	struct ib_device *device;
	u32 lkey;
	u32 rkey;
	u64 iova;
	u64 length;
	unsigned int page_size;
	enum ib_mr_type type;
	struct ib_uobject *uobject;
	struct rdma_restrack_entry res;
} READ;

struct sg_table {
	unsigned int nents;
	unsigned int orig_nents;
} READ;

struct sg_append_table {
	struct sg_table sgt;
} READ;

struct ib_umem {
	u64 length;
	unsigned long address;
	struct sg_append_table sgt_append;
} READ;

struct ib_udata {
	const void *inbuf;
	u64 inlen;
} READ;

struct ib_ucontext {
	struct ib_device *device;
} READ;

struct uverbs_attr_bundle {
	struct ib_udata ucore;
	struct ib_ucontext *context;
	unsigned long attr_present[1];
} READ;

#endif /* MRSCOPE_BPF_TYPES_H_ */
