/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of mrlab.ko share.  A file holds one concept; what it offers
 * to the others is listed here under its name.
 *
 * The device can reach memory in one way only: a key names a region (key.c),
 * the region's table turns an address into a DMA address (table.c), and the
 * IOMMU, where there is one, that into a page (memory.c).  Registration (mr.c)
 * fills these in; the engine (engine.c) uses them, and plays the hardware.
 */
#ifndef MRLAB_LAB_H
#define MRLAB_LAB_H

#include <linux/completion.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include "mrlab.h"

struct dentry;
struct ib_umem;
struct ib_umem_odp;
struct iommu_domain;
struct pci_dev;
struct mrlab_edu;

/* The device's limits, as it reports them. */
#define MRLAB_MAX_PD		1024
#define MRLAB_MAX_CQ		4096
#define MRLAB_MAX_CQE		65536
#define MRLAB_MAX_QP		4096
#define MRLAB_MAX_WR		16384
#define MRLAB_MAX_SGE		32
#define MRLAB_MAX_INLINE	512
#define MRLAB_MAX_RD_ATOMIC	16
/* Of any length, eight bytes a page are less than the kernel allocates at once. */
#define MRLAB_MAX_MR_BYTES	BIT_ULL(39)
#define MRLAB_MAX_MESSAGE	BIT(31)
#define MRLAB_LID		1
#define MRLAB_PSN_MASK		GENMASK(23, 0)

/* Of enum ib_wr_opcode, those that the device knows are below. */
#define MRLAB_OPCODES		(IB_WR_SEND_WITH_INV + 1)

/* Why the device refused an access.  The names are in debugfs.c. */
enum mrlab_refusal {
	MRLAB_OK,
	MRLAB_NO_KEY,		/* nothing at the key's index */
	MRLAB_STALE_KEY,	/* another region than the key was made for */
	MRLAB_INVALIDATED,	/* by a SEND with invalidate */
	MRLAB_OTHER_PD,
	MRLAB_BOUNDS,
	MRLAB_MR_ACCESS,	/* the region was registered without it */
	MRLAB_QP_ACCESS,	/* the queue pair does not allow it */
	MRLAB_ALIGNMENT,	/* of an atomic operation */
	MRLAB_NOT_PAGED_IN,	/* a page on demand could not be had */
	MRLAB_NO_TRANSLATION,	/* the IOMMU or the bus has no memory there */
	MRLAB_REFUSALS
};

/*
 * Translation.  An entry is the DMA address of a page, and whether the device
 * may read and write it: both are clear where no page is mapped.
 */
#define MRLAB_PAGE_READ		BIT(0)
#define MRLAB_PAGE_WRITE	BIT(1)
#define MRLAB_PAGE_FLAGS	(MRLAB_PAGE_READ | MRLAB_PAGE_WRITE)
#define MRLAB_LEAF_ENTRIES	(PAGE_SIZE / sizeof(u64))

struct mrlab_table {
	unsigned int page_shift;
	unsigned int levels;
	size_t entries;
	u64 base;		/* the address that the first page begins with */
	union {
		u64 *flat;	/* one level */
		u64 **leaves;	/* two: pages of MRLAB_LEAF_ENTRIES each */
	};
};

static inline u64 *mrlab_table_entry(const struct mrlab_table *table,
				     size_t index)
{
	if (table->levels == 1)
		return &table->flat[index];
	return &table->leaves[index / MRLAB_LEAF_ENTRIES][index % MRLAB_LEAF_ENTRIES];
}

/*
 * Where an address of the region is, and how much follows in the same page.
 * False where no page is mapped, or not with that right.  The caller has
 * checked the bounds.
 */
static inline bool mrlab_table_find(const struct mrlab_table *table, u64 addr,
				    u64 right, dma_addr_t *dma, size_t *left)
{
	u64 offset = addr - table->base;
	u64 within = offset & (BIT_ULL(table->page_shift) - 1);
	const u64 *place = mrlab_table_entry(table, offset >> table->page_shift);
	u64 entry = READ_ONCE(*place);

	if (!(entry & right))
		return false;
	*dma = (entry & ~(u64)MRLAB_PAGE_FLAGS) + within;
	*left = BIT_ULL(table->page_shift) - within;
	return true;
}

/*
 * A registered region.  Who finds it by its key holds a reference while the
 * device uses it; to withdraw it is to wait until these are gone.
 */
struct mrlab_mr {
	struct ib_mr ibmr;
	struct mrlab_table table;
	struct ib_umem *umem;
	struct ib_pd *pd;	/* of ibmr, known before the core sets it */
	bool own_umem;		/* pinned by pin.c, not by ib_core */
	bool on_demand;
	bool invalidated;
	bool withdrawn;		/* what is being carried is to end */
	u32 access;		/* enum ib_access_flags */
	u64 start;		/* in the owner's memory, or in the dmabuf */
	u64 base;		/* the address that its first byte has */
	u64 length;
	u32 key;
	refcount_t users;
	struct completion unused;
	struct rcu_head rcu;
	pid_t tgid;
	char comm[TASK_COMM_LEN];
	atomic64_t refused;
	atomic64_t faults;		/* on demand, and pages of these */
	atomic64_t pages_in;
	atomic64_t pages_out;
	atomic64_t prefetched;
	u64 unmap_ns;		/* of the deregistration */
	u64 unpin_ns;
	struct mrlab_reg_mr_resp cost;
};

struct mrlab_keys {
	struct xarray regions;	/* by index; reserved while not published */
	u8 *last_variant;	/* by index */
	u32 next;		/* index, where they are cyclic */
};

struct mrlab_ucontext {
	struct ib_ucontext ibuc;
};

struct mrlab_pd {
	struct ib_pd ibpd;
	u32 number;
	pid_t tgid;
	char comm[TASK_COMM_LEN];
};

struct mrlab_cq {
	struct ib_cq ibcq;
	spinlock_t lock;	/* of all below */
	struct ib_wc *ring;
	u32 size;
	u32 head;		/* the oldest */
	u32 count;
	bool overrun;
	bool armed;
	bool solicited_only;
};

/* A work request as the engine takes it, wherever it came from. */
struct mrlab_wqe {
	u64 wr_id;
	enum ib_wr_opcode opcode;
	int send_flags;
	union {
		__be32 imm_data;
		u32 invalidate_rkey;
	} ex;
	u64 remote_addr;
	u32 rkey;
	u64 compare_add;
	u64 swap;
	u32 length;
	u32 nsge;
	bool inlined;
	u8 rnr_tries;
	u8 tries;
	union {			/* in the queue's payload */
		struct ib_sge *sge;
		u8 *data;	/* inlined */
	};
};

/*
 * A ring of work requests, and where they keep what they point to.  One at a
 * time may post and one at a time may take, which need no lock against each
 * other.
 */
struct mrlab_queue {
	struct mrlab_wqe *ring;
	void *payload;
	size_t payload_bytes;	/* of each */
	u32 size;		/* as many may be posted */
	u32 mask;		/* of the ring's places, a power of two */
	u32 max_sge;
	u32 head;		/* the oldest, counted on and on */
	u32 tail;		/* the next */
};

static inline u32 mrlab_queue_count(const struct mrlab_queue *queue)
{
	/* Pairs with mrlab_queue_pop(). */
	return READ_ONCE(queue->tail) - smp_load_acquire(&queue->head);
}

/* Where the next request goes, or NULL if the ring is full. */
static inline struct mrlab_wqe *mrlab_queue_tail(struct mrlab_queue *queue)
{
	u32 place = queue->tail & queue->mask;
	struct mrlab_wqe *wqe = &queue->ring[place];

	if (mrlab_queue_count(queue) == queue->size)
		return NULL;
	wqe->sge = queue->payload + place * queue->payload_bytes;
	return wqe;
}

static inline void mrlab_queue_push(struct mrlab_queue *queue)
{
	/* It is complete: pairs with mrlab_queue_head(). */
	smp_store_release(&queue->tail, queue->tail + 1);
}

/* The oldest request, or NULL. */
static inline struct mrlab_wqe *mrlab_queue_head(struct mrlab_queue *queue)
{
	/* Pairs with mrlab_queue_push(). */
	if (queue->head == smp_load_acquire(&queue->tail))
		return NULL;
	return &queue->ring[queue->head & queue->mask];
}

static inline void mrlab_queue_pop(struct mrlab_queue *queue)
{
	/* It is done with: pairs with mrlab_queue_count(). */
	smp_store_release(&queue->head, queue->head + 1);
}

/* A piece of memory that a message is gathered from or scattered to. */
struct mrlab_segment {
	struct mrlab_mr *mr;	/* with a reference; none: data is inlined */
	u64 addr;		/* as the key's owner has it, or a pointer */
	u32 length;
	u32 key;
};

struct mrlab_message {
	struct mrlab_segment segment[MRLAB_MAX_SGE];
	u32 count;
	u64 length;
};

struct mrlab_qp {
	struct ib_qp ibqp;
	struct ib_qp *plate;	/* see qp.c */
	struct mrlab_queue sq;
	struct mrlab_queue rq;
	struct mutex posting;	/* of sends: copying inlined bytes may sleep */
	spinlock_t receiving;	/* posting of receives */
	struct mutex engine;	/* one request of those posted at a time */
	struct mutex responder;	/* one peer at a time; taken last of these */
	bool stop;		/* what is carried from or to it: the state is to change */
	struct delayed_work work;
	bool waiting;		/* for a retry, until the work runs */
	enum ib_qp_state state;
	struct ib_qp_attr attr;
	struct ib_qp_init_attr init;
	refcount_t users;
	struct completion unused;
	u32 sq_psn;
	u32 rq_psn;
	struct mrlab_qp *peer;	/* while a message is carried to it */
	u8 peer_rnr_timer;	/* what a peer without a receive asked for */
	struct mrlab_message here;	/* of the request under way */
	struct mrlab_message there;
	void *bounce;		/* a page, see memory.c */
	atomic64_t refused;
	pid_t tgid;
	char comm[TASK_COMM_LEN];
};

/* What the engine did, and how long it was at it. */
struct mrlab_engine_counters {
	atomic64_t requests[MRLAB_OPCODES];	/* by ib_wr_opcode */
	atomic64_t bytes;
	atomic64_t busy_ns;
	atomic64_t rnr_waits;
	atomic64_t retries;
};

struct mrlab_dev {
	struct ib_device ibdev;
	struct device *parent;
	struct mrlab_edu *edu;		/* none: a platform device */
	struct iommu_domain *domain;	/* none: DMA addresses are physical */
	struct workqueue_struct *wq;
	struct mrlab_keys keys;
	struct xarray pds;
	struct xarray qps;		/* by number */
	u32 next_qp;
	struct xarray plates;		/* by number */
	atomic_t cqs;
	struct mrlab_engine_counters engine;
	atomic64_t refused[MRLAB_REFUSALS];
	struct dentry *debugfs;
};

static inline struct mrlab_dev *to_mrlab(struct ib_device *dev)
{
	return container_of(dev, struct mrlab_dev, ibdev);
}

static inline struct mrlab_mr *to_mrlab_mr(struct ib_mr *mr)
{
	return container_of(mr, struct mrlab_mr, ibmr);
}

static inline struct mrlab_pd *to_mrlab_pd(struct ib_pd *pd)
{
	return container_of(pd, struct mrlab_pd, ibpd);
}

static inline struct mrlab_cq *to_mrlab_cq(struct ib_cq *cq)
{
	return container_of(cq, struct mrlab_cq, ibcq);
}

static inline struct mrlab_qp *to_mrlab_qp(struct ib_qp *qp)
{
	return container_of(qp, struct mrlab_qp, ibqp);
}

static inline void mrlab_mr_put(struct mrlab_mr *mr)
{
	if (refcount_dec_and_test(&mr->users))
		complete(&mr->unused);
}

static inline void mrlab_qp_put(struct mrlab_qp *qp)
{
	if (refcount_dec_and_test(&qp->users))
		complete(&qp->unused);
}

/* May requests that were begun go on? */
static inline bool mrlab_qp_sends(const struct mrlab_qp *qp)
{
	enum ib_qp_state state = READ_ONCE(qp->state);

	return (state == IB_QPS_RTS || state == IB_QPS_SQD) &&
	       !READ_ONCE(qp->stop);
}

static inline bool mrlab_qp_responds(const struct mrlab_qp *qp)
{
	enum ib_qp_state state = READ_ONCE(qp->state);

	return state >= IB_QPS_RTR && state <= IB_QPS_SQE;
}

/* The time of a registration, split into its stages. */
struct mrlab_clock {
	u64 begun_ns;
	u64 last_ns;
	u64 *stage_ns;
};

static inline void mrlab_clock_start(struct mrlab_clock *clock, u64 *stage_ns)
{
	clock->begun_ns = ktime_get_ns();
	clock->last_ns = clock->begun_ns;
	clock->stage_ns = stage_ns;
}

/* What passed since the last call was this stage. */
static inline void mrlab_clock_lap(struct mrlab_clock *clock,
				   enum mrlab_stage stage)
{
	u64 now = ktime_get_ns();

	clock->stage_ns[stage] += now - clock->last_ns;
	clock->last_ns = now;
}

/* device.c */
int mrlab_device_create(struct device *parent, struct mrlab_edu *edu);

/* edu.c */
int mrlab_edu_register(void);
void mrlab_edu_unregister(void);
int mrlab_edu_copy(struct mrlab_edu *edu, dma_addr_t to, dma_addr_t from,
		   size_t length);

/* pd.c */
extern const struct ib_device_ops mrlab_pd_ops;

/* mr.c */
extern const struct ib_device_ops mrlab_mr_ops;

/* pin.c */
int mrlab_pin(struct mrlab_mr *mr, struct ib_device *dev, u64 start,
	      struct mrlab_clock *clock);
void mrlab_unpin(struct mrlab_mr *mr);

/* table.c */
int mrlab_table_init(void);
int mrlab_table_page_size(struct mrlab_mr *mr, unsigned long *page_size);
int mrlab_table_build(struct mrlab_mr *mr, unsigned long page_size);
void mrlab_table_free(struct mrlab_table *table);

/* key.c */
extern unsigned int mrlab_max_mr;
int mrlab_keys_check(void);
int mrlab_keys_init(struct mrlab_keys *keys);
void mrlab_keys_destroy(struct mrlab_keys *keys);
int mrlab_key_alloc(struct mrlab_keys *keys, u32 *key);
void mrlab_key_free(struct mrlab_keys *keys, u32 key);
void mrlab_key_publish(struct mrlab_keys *keys, struct mrlab_mr *mr);
void mrlab_key_withdraw(struct mrlab_keys *keys, struct mrlab_mr *mr);
struct mrlab_mr *mrlab_key_find(struct mrlab_keys *keys, u32 key,
				enum mrlab_refusal *why);

/* access.c */
void mrlab_refused(struct mrlab_qp *qp, struct mrlab_mr *mr, u32 key,
		   enum mrlab_refusal why);
struct mrlab_mr *mrlab_access(struct mrlab_qp *qp, u32 key, u64 addr,
			      u64 length, u32 right);
bool mrlab_invalidate(struct mrlab_qp *qp, u32 key);

/* odp.c */
int mrlab_odp_get(struct mrlab_mr *mr, struct ib_device *dev, u64 start);
void mrlab_odp_ready(struct mrlab_mr *mr);
enum mrlab_refusal mrlab_odp_lock(struct mrlab_mr *mr, u64 addr, u64 right,
				  dma_addr_t *dma, size_t *left);
void mrlab_odp_unlock(struct mrlab_mr *mr);
int mrlab_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice,
		    u32 flags, struct ib_sge *sg_list, u32 num_sge,
		    struct uverbs_attr_bundle *attrs);

/* dmabuf.c */
int mrlab_dmabuf_get(struct mrlab_mr *mr, struct ib_device *dev, u64 offset,
		     int fd);

/* memory.c */
int mrlab_copy(struct mrlab_qp *qp, const struct mrlab_message *to,
	       const struct mrlab_message *from, u64 length,
	       const struct mrlab_message **culprit);
int mrlab_atomic(struct mrlab_qp *qp, const struct mrlab_segment *target,
		 const struct mrlab_wqe *wqe, u64 *original);

/* cq.c */
extern const struct ib_device_ops mrlab_cq_ops;
bool mrlab_cq_add(struct ib_cq *cq, const struct ib_wc *wc, bool solicited);
void mrlab_cq_purge(struct ib_cq *cq, const struct ib_qp *plate);

/* qp.c */
extern const struct ib_device_ops mrlab_qp_ops;
struct mrlab_qp *mrlab_qp_get(struct mrlab_dev *dev, u32 number);
void mrlab_qp_event(struct mrlab_qp *qp, enum ib_event_type type);
void mrlab_plates_destroy(struct mrlab_dev *dev);

/* queue.c */
int mrlab_queue_init(struct mrlab_queue *queue, u32 size, u32 max_sge,
		     u32 max_inline);
void mrlab_queue_destroy(struct mrlab_queue *queue);
void mrlab_queue_clear(struct mrlab_queue *queue);

/* post.c */
extern const struct ib_device_ops mrlab_post_ops;

/* engine.c */
void mrlab_engine_run(struct mrlab_qp *qp, bool posted);
void mrlab_flush(struct mrlab_qp *qp);
void mrlab_engine_work(struct work_struct *work);

/* debugfs.c */
void mrlab_debugfs_init(void);
void mrlab_debugfs_exit(void);
void mrlab_debugfs_create(struct mrlab_dev *dev);
void mrlab_debugfs_remove(struct mrlab_dev *dev);

#endif /* MRLAB_LAB_H */
