/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What mrlab.ko and its provider for rdma-core agree on: the driver's part of
 * the responses to uverbs commands.  Everything else goes through the commands
 * of the core, posting and polling included.
 *
 * A response may be longer than the reader knows, or shorter than it asks for:
 * "size" says how many bytes the driver knows.
 */
#ifndef MRLAB_H
#define MRLAB_H

#include <linux/types.h>

#define MRLAB_ABI_VERSION	1

/*
 * The stages of a registration, in the order of kmod/mrlab/mr.c.  MAP is the
 * DMA mapping.  A registration of a dmabuf has ATTACH in place of PIN, SCATTER
 * and MAP; one that is paged on demand has none of these.
 */
enum mrlab_stage {
	MRLAB_CHECK,		/* arguments, and the pages against MEMLOCK */
	MRLAB_PIN,		/* inside pin_user_pages_fast() */
	MRLAB_SCATTER,		/* the scatter list */
	MRLAB_MAP,		/* inside the DMA mapping call */
	MRLAB_ATTACH,		/* dmabuf: attach, pin and map */
	MRLAB_PAGE_SIZE,	/* the largest page that the table can be made of */
	MRLAB_TABLE,		/* the translation table */
	MRLAB_KEY,		/* index and variant */
	MRLAB_PUBLISH,		/* from here on the device accepts the key */
	MRLAB_STAGES
};

#define MRLAB_STAGE_NAMES						\
	"check", "pin", "scatter", "map", "attach", "page_size", "table",	\
	"key", "publish"

/* A stage that was not told apart: with the stock umem, all but PIN of it. */
#define MRLAB_NS_UNKNOWN	(~(__u64)0)

struct mrlab_alloc_ucontext_resp {
	__u32 size;		/* of this structure, as the driver knows it */
	__u32 max_inline_bytes;
	__u32 real_iommu;	/* 1: the device is behind an IOMMU that translates */
	__u32 reserved;
};

/*
 * Of reg_mr, and of rereg_mr where it made a new region.  The core's command for
 * dmabufs has no room for it.
 */
struct mrlab_reg_mr_resp {
	__u32 size;		/* of this structure, as the driver knows it */
	__u32 page_shift;	/* log2 of the table's page size in bytes */
	__u32 levels;		/* of the table, 1 or 2 */
	__u32 dma_entries;	/* of the scatter list, as mapped */
	__u64 sg_entries;	/* of the scatter list, as pinned */
	__u64 table_entries;
	__u64 stage_ns[MRLAB_STAGES];	/* CLOCK_MONOTONIC; MRLAB_NS_UNKNOWN */
};

#endif /* MRLAB_H */
