// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What libibverbs finds when it loads this library: which devices are ours.

#include <mrlab.h>

#include "memory.h"
#include "ops.h"

namespace mrlab {
namespace {

// The kernel's driver id is "unknown", as that of every driver outside of its
// tree: what is left is the device's name.
const verbs_match_ent kMatches[] = {
    {.driver_data = nullptr,
     .u = {.modalias = "rdma_device:*Nmrlab*"},
     .vendor = 0,
     .device = 0,
     .kind = kMatchModalias},
    {.driver_data = nullptr,
     .u = {.modalias = nullptr},
     .vendor = 0,
     .device = 0,
     .kind = kMatchEnd},
};

verbs_device* AllocDevice(verbs_sysfs_dev* /*sysfs*/) { return Allocate<verbs_device>().release(); }

void UninitDevice(verbs_device* device) { std::free(device); }

const verbs_device_ops kDeviceOps = {
    .name = "mrlab",
    .match_min_abi_version = MRLAB_ABI_VERSION,
    .match_max_abi_version = MRLAB_ABI_VERSION,
    .match_table = kMatches,
    .static_providers = nullptr,
    .match_device = nullptr,
    .alloc_context = OpenContext,
    .import_context = nullptr,
    .alloc_device = AllocDevice,
    .uninit_device = UninitDevice,
};

[[gnu::constructor]] void Load() { RegisterDriver(&kDeviceOps); }

}  // namespace
}  // namespace mrlab
