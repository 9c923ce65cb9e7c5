// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// ibv_reg_mr_ex(), which came with rdma-core 59: what can be said with the older
// verbs is done by them, so that the stages are known here too.

#include "memory.h"
#include "ops.h"

namespace mrlab {
namespace {

constexpr std::uint64_t kKnown =
    IBV_REG_MR_MASK_IOVA | IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET;
constexpr std::uint64_t kDmabuf =
    IBV_REG_MR_MASK_IOVA | IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET;

}  // namespace

ibv_mr* RegisterEx(ibv_pd* pd, ibv_mr_init_attr* attr) {
  const std::uint64_t mask = attr->comp_mask;
  if ((mask & ~kKnown) != 0) return Fail(EOPNOTSUPP);
  if (mask == kDmabuf) {
    return RegisterDmabuf(pd, attr->fd_offset, attr->length, attr->iova, attr->fd, attr->access);
  }
  if ((mask & ~IBV_REG_MR_MASK_IOVA) != IBV_REG_MR_MASK_ADDR) return Fail(EINVAL);
  const std::uint64_t iova = (mask & IBV_REG_MR_MASK_IOVA) != 0
                                 ? attr->iova
                                 : reinterpret_cast<std::uintptr_t>(attr->addr);
  return Register(pd, attr->addr, attr->length, iova, attr->access);
}

}  // namespace mrlab
