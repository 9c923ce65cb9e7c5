/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels, and only that.  Differences are decided by what
 * the kernel at hand compiles (config/, which defines MRS_HAVE_...), never by a
 * version number: distributions backport.
 */
#ifndef MRLAB_COMPAT_H
#define MRLAB_COMPAT_H

#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_umem_odp.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>
#ifdef MRS_HAVE_HMM_DMA_MAP
#include <linux/hmm.h>
#include <linux/hmm-dma.h>
#include <linux/pci-p2pdma.h>
#endif

/*
 * A page that the device only reads must be the one that the owner writes to.
 * Kernels whose FOLL_ flags are an enum break the sharing of such a page by
 * themselves; before, it was pinned as if for writing.
 */
#define MRLAB_PIN_WRITE	(FOLL_LONGTERM | FOLL_WRITE)
#ifdef FOLL_LONGTERM
#define MRLAB_PIN_READ	(FOLL_LONGTERM | FOLL_WRITE | FOLL_FORCE)
#else
#define MRLAB_PIN_READ	FOLL_LONGTERM
#endif

/*
 * What CPU and device see is one memory, without copies in between.  The same
 * page may be in many regions, which the older attribute tells who checks
 * mappings.
 */
#ifdef DMA_ATTR_REQUIRE_COHERENT
#define MRLAB_DMA_ATTRS	DMA_ATTR_REQUIRE_COHERENT
#else
#define MRLAB_DMA_ATTRS	DMA_ATTR_SKIP_CPU_SYNC
#endif

#ifdef MRS_HAVE_IB_UMEM_GET_VA
#define mrlab_ib_umem_get	ib_umem_get_va
#else
#define mrlab_ib_umem_get	ib_umem_get
#endif

/* The last argument of two operations, which mrlab does not use. */
#ifdef MRS_HAVE_CREATE_CQ_ATTRS
#define mrlab_op_data	uverbs_attr_bundle
#else
#define mrlab_op_data	ib_udata
#endif

/* The udata of what has the one or the other. */
static inline struct ib_udata *mrlab_op_udata(struct mrlab_op_data *data)
{
#ifdef MRS_HAVE_CREATE_CQ_ATTRS
	return data ? &data->driver_udata : NULL;
#else
	return data;
#endif
}

/* Registration with a handle for the PCIe processing hints, which none is. */
#ifdef MRS_HAVE_REG_USER_MR_DMAH
#define MRLAB_REG_DMAH	struct ib_dmah *dmah,
#define MRLAB_HAS_DMAH	(dmah)
#else
#define MRLAB_REG_DMAH
#define MRLAB_HAS_DMAH	false
#endif

#ifdef MRS_HAVE_RESIZE_USER_CQ
#define MRLAB_RESIZE_CQ	resize_user_cq
#define MRLAB_CQE_COUNT	unsigned int
#else
#define MRLAB_RESIZE_CQ	resize_cq
#define MRLAB_CQE_COUNT	int
#endif

/*
 * A page of memory on demand, after it was asked for: its DMA address, or 0
 * where it was not there, and whether it may be written.  Under umem_mutex.
 */
#ifdef MRS_HAVE_HMM_DMA_MAP
#define MRLAB_ODP_READ	0
#define MRLAB_ODP_WRITE	HMM_PFN_WRITE
static inline dma_addr_t mrlab_odp_page(struct ib_umem_odp *odp, size_t index,
					bool *writable)
{
	struct pci_p2pdma_map_state state = {};
	unsigned long *pfn = &odp->map.pfn_list[index];
	bool counted = *pfn & HMM_PFN_DMA_MAPPED;
	dma_addr_t dma;

	if (!(*pfn & HMM_PFN_VALID))
		return 0;
	dma = hmm_dma_map_pfn(odp->umem.ibdev->dma_device, &odp->map, index,
			      &state);
	if (dma_mapping_error(odp->umem.ibdev->dma_device, dma))
		return 0;
	if (!counted)
		odp->npages++;
	*writable = *pfn & HMM_PFN_WRITE;
	return dma;
}
#else
#define MRLAB_ODP_READ	ODP_READ_ALLOWED_BIT
#define MRLAB_ODP_WRITE	(ODP_READ_ALLOWED_BIT | ODP_WRITE_ALLOWED_BIT)
static inline dma_addr_t mrlab_odp_page(struct ib_umem_odp *odp, size_t index,
					bool *writable)
{
	dma_addr_t dma = odp->dma_list[index];

	*writable = dma & ODP_WRITE_ALLOWED_BIT;
	return dma & ODP_DMA_ADDR_MASK;
}
#endif

#endif /* MRLAB_COMPAT_H */
