// SPDX-License-Identifier: GPL-2.0
/*
 * What is known of drivers by name.  Everything works without an entry here;
 * an entry names the key allocator, or says what the driver's user library
 * registers.
 *
 * A key allocator is an entry-only probe (mrs_key_entry) where the key's work
 * lasts until the next boundary, or a pair (mrs_key_call, mrs_key_return)
 * where it is a function of its own.  Symbols of drivers that are not loaded
 * are simply not found.  A software device's DMA mapping ends where its table
 * begins, if that is a function.
 */
#include "observer.h"

/* Since 6.12; before, nothing is called between the pin and the table. */
#define MRS_RXE_TABLE	"__alloc_mr_page_info"

static const struct mrs_driver mrs_drivers[] = {
	{ "rdma_rxe", MRSCOPE_PURPOSE_USER, .key_in_prepare = true,
	  .table = MRS_RXE_TABLE },
	{ "siw", MRSCOPE_PURPOSE_USER },
	{ "mlx4_ib", MRSCOPE_PURPOSE_USER },
	{ "mlx5_ib", MRSCOPE_PURPOSE_USER },
	{ "bnxt_re", MRSCOPE_PURPOSE_USER },
	{ "efa", MRSCOPE_PURPOSE_USER },
	/* irdma, hns and others register queue rings the same way: unknown */
};

const struct mrs_driver *mrs_driver_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(mrs_drivers); i++)
		if (!strcmp(mrs_drivers[i].name, name))
			return &mrs_drivers[i];
	return NULL;
}

struct mrs_probe mrs_driver_probes[] = {
	/*
	 * rxe: 6.12 takes the index from its pool, then draws the variant, then
	 * pins.  6.1 allocates the MR and its index in one function (and knows
	 * the other one too, for objects that the core allocates), pins, and
	 * draws the variant while it builds its table.
	 */
	{ .boundary = MRS_B_KEY, .on_entry = mrs_key_entry, .during = MRS_REG,
	  .symbols = MRS_SYMBOLS("rxe_alloc", "__rxe_add_to_pool") },
	{ .boundary = MRS_B_TABLE, .on_entry = mrs_table_entry, .during = MRS_REG,
	  .optional = true, .symbols = MRS_SYMBOLS(MRS_RXE_TABLE) },
};

const unsigned int mrs_driver_nprobes = ARRAY_SIZE(mrs_driver_probes);
