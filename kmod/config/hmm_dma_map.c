// SPDX-License-Identifier: GPL-2.0
/* Pages on demand are kept, and mapped for DMA, by hmm. */
#include <linux/hmm-dma.h>
#include <rdma/ib_umem_odp.h>

struct hmm_dma_map *probe(struct ib_umem_odp *odp);

struct hmm_dma_map *probe(struct ib_umem_odp *odp)
{
	return &odp->map;
}
