// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of another device, or of its driver, shared as a dmabuf.  It is
 * pinned where it is: an exporter that would move it must wait.
 */
#include <linux/err.h>
#include <rdma/ib_umem.h>
#include "lab.h"

int mrlab_dmabuf_get(struct mrlab_mr *mr, struct ib_device *dev, u64 offset,
		     int fd)
{
	struct ib_umem_dmabuf *dmabuf =
		ib_umem_dmabuf_get_pinned(dev, offset, mr->length, fd,
					  mr->access);

	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	mr->umem = &dmabuf->umem;
	return 0;
}
