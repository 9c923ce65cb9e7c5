// SPDX-License-Identifier: GPL-2.0
/* Making and unmaking of a ring of work requests; its use is in lab.h. */
#include <linux/log2.h>
#include <linux/mm.h>
#include "lab.h"

int mrlab_queue_init(struct mrlab_queue *queue, u32 size, u32 max_sge,
		     u32 max_inline)
{
	u32 places;

	queue->size = max_t(u32, size, 1);
	places = roundup_pow_of_two(queue->size);
	queue->mask = places - 1;
	queue->max_sge = max_sge;
	queue->payload_bytes = max_t(size_t, max_sge * sizeof(struct ib_sge),
				     ALIGN(max_inline, sizeof(u64)));
	queue->ring = kvcalloc(places, sizeof(*queue->ring), GFP_KERNEL_ACCOUNT);
	queue->payload = kvcalloc(places, max_t(size_t, queue->payload_bytes, 1),
				  GFP_KERNEL_ACCOUNT);
	if (!queue->ring || !queue->payload) {
		mrlab_queue_destroy(queue);
		return -ENOMEM;
	}
	return 0;
}

void mrlab_queue_destroy(struct mrlab_queue *queue)
{
	kvfree(queue->payload);
	kvfree(queue->ring);
	queue->payload = NULL;
	queue->ring = NULL;
}

/* While nobody posts or takes. */
void mrlab_queue_clear(struct mrlab_queue *queue)
{
	queue->head = queue->tail;
}
