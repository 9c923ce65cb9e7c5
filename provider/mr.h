// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#ifndef MRLAB_PROVIDER_MR_H_
#define MRLAB_PROVIDER_MR_H_

#include <mrlab.h>

#include "verbs_abi.h"

namespace mrlab {

// A memory region, and what the driver said of its registration: size 0 if it
// said nothing.
struct Mr {
  verbs_mr verbs;
  mrlab_reg_mr_resp stages;
};

}  // namespace mrlab

#endif  // MRLAB_PROVIDER_MR_H_
