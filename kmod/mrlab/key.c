// SPDX-License-Identifier: GPL-2.0
/*
 * Keys.  A key is an index, which finds the region at once, and a variant of
 * eight bits, which tells it from the regions that had the index before: an
 * old key on a reused index is refused.  That detects mistakes; with 256
 * variants it is no protection against guessing.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/random.h>
#include <linux/vmalloc.h>
#include "lab.h"

#define MRLAB_KEY_INDEX(key)	((key) >> 8)
#define MRLAB_MAX_INDEX		GENMASK(23, 0)

unsigned int mrlab_max_mr = 65536;
module_param_named(max_mr, mrlab_max_mr, uint, 0444);
MODULE_PARM_DESC(max_mr, "regions at the same time (65536)");

static char *key_variant = "counter";
module_param(key_variant, charp, 0444);
MODULE_PARM_DESC(key_variant, "counter (of each index), random or constant");

static char *key_index = "lowest";
module_param(key_index, charp, 0444);
MODULE_PARM_DESC(key_index, "lowest (reused at once) or cyclic");

enum { MRLAB_COUNTER, MRLAB_RANDOM, MRLAB_CONSTANT };

static const char * const mrlab_variants[] = {
	[MRLAB_COUNTER] = "counter",
	[MRLAB_RANDOM] = "random",
	[MRLAB_CONSTANT] = "constant",
};

/* Is it cyclic? */
static const char * const mrlab_indices[] = { "lowest", "cyclic" };

/* The policies, from the parameters. */
static int mrlab_variant;
static int mrlab_cyclic;

int mrlab_keys_check(void)
{
	if (mrlab_max_mr < 1 || mrlab_max_mr > MRLAB_MAX_INDEX) {
		pr_err("max_mr is from 1 to %lu\n", MRLAB_MAX_INDEX);
		return -EINVAL;
	}
	mrlab_variant = match_string(mrlab_variants, ARRAY_SIZE(mrlab_variants),
				     key_variant);
	if (mrlab_variant < 0) {
		pr_err("key_variant is counter, random or constant\n");
		return -EINVAL;
	}
	mrlab_cyclic = match_string(mrlab_indices, ARRAY_SIZE(mrlab_indices),
				    key_index);
	if (mrlab_cyclic < 0) {
		pr_err("key_index is lowest or cyclic\n");
		return -EINVAL;
	}
	return 0;
}

int mrlab_keys_init(struct mrlab_keys *keys)
{
	keys->last_variant = vzalloc(mrlab_max_mr + 1);
	if (!keys->last_variant)
		return -ENOMEM;
	xa_init_flags(&keys->regions, XA_FLAGS_ALLOC1);
	return 0;
}

void mrlab_keys_destroy(struct mrlab_keys *keys)
{
	WARN_ON(!xa_empty(&keys->regions));
	xa_destroy(&keys->regions);
	vfree(keys->last_variant);
}

static u8 mrlab_next_variant(struct mrlab_keys *keys, u32 index)
{
	switch (mrlab_variant) {
	case MRLAB_COUNTER:
		return ++keys->last_variant[index];
	case MRLAB_RANDOM:
		return get_random_u32();
	default:
		return 0;
	}
}

/* A key that leads nowhere yet. */
int mrlab_key_alloc(struct mrlab_keys *keys, u32 *key)
{
	struct xa_limit limit = XA_LIMIT(1, mrlab_max_mr);
	u32 index;
	int err;

	if (mrlab_cyclic)
		err = xa_alloc_cyclic(&keys->regions, &index, NULL, limit,
				      &keys->next, GFP_KERNEL);
	else
		err = xa_alloc(&keys->regions, &index, NULL, limit, GFP_KERNEL);
	if (err < 0)
		return err == -EBUSY ? -ENOMEM : err;
	*key = index << 8 | mrlab_next_variant(keys, index);
	return 0;
}

void mrlab_key_free(struct mrlab_keys *keys, u32 key)
{
	xa_erase(&keys->regions, MRLAB_KEY_INDEX(key));
}

/* From here on the device accepts it.  Its index is reserved: it has room. */
void mrlab_key_publish(struct mrlab_keys *keys, struct mrlab_mr *mr)
{
	refcount_set(&mr->users, 1);
	WRITE_ONCE(mr->withdrawn, false);
	reinit_completion(&mr->unused);
	xa_store(&keys->regions, MRLAB_KEY_INDEX(mr->key), mr, GFP_KERNEL);
}

/*
 * Nobody finds the region any more, and nobody uses it when this returns: a
 * large message that is being carried ends in the middle, as an access that is
 * refused.
 */
void mrlab_key_withdraw(struct mrlab_keys *keys, struct mrlab_mr *mr)
{
	xa_store(&keys->regions, MRLAB_KEY_INDEX(mr->key), NULL, GFP_KERNEL);
	WRITE_ONCE(mr->withdrawn, true);
	mrlab_mr_put(mr);
	wait_for_completion(&mr->unused);
}

/* With a reference; or NULL, and why. */
struct mrlab_mr *mrlab_key_find(struct mrlab_keys *keys, u32 key,
				enum mrlab_refusal *why)
{
	struct mrlab_mr *mr;

	rcu_read_lock();
	mr = xa_load(&keys->regions, MRLAB_KEY_INDEX(key));
	if (!mr || !refcount_inc_not_zero(&mr->users)) {
		*why = MRLAB_NO_KEY;
		mr = NULL;
	} else if (mr->key != key) {
		*why = MRLAB_STALE_KEY;
		mrlab_mr_put(mr);
		mr = NULL;
	}
	rcu_read_unlock();
	return mr;
}
