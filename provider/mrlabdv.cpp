// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrlabdv.h"

#include <cerrno>

#include "mr.h"
#include "ops.h"

int mrlabdv_reg_stages(const ibv_mr* mr, mrlab_reg_mr_resp* stages) {
  if (mr->context->ops.poll_cq != mrlab::Poll) return EOPNOTSUPP;
  const auto* region = reinterpret_cast<const mrlab::Mr*>(mr);
  if (region->stages.size == 0) return ENODATA;
  *stages = region->stages;
  return 0;
}
