// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A registered part of a block. Each call that makes, changes or ends one is
// counted, and must succeed.

#ifndef TESTS_GUEST_LAB_REGION_H_
#define TESTS_GUEST_LAB_REGION_H_

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "device.h"
#include "lab_block.h"
#include "lab_counts.h"

class Region {
 public:
  struct Shape {
    std::size_t offset = 0;  // in the block
    std::size_t length = 0;
    unsigned access = 0;
    std::uint64_t base = 0;  // the address that its first byte has
  };

  Region(ibv_pd* pd, std::shared_ptr<Block> block, const Shape& shape)
      : block_(std::move(block)), shape_(shape) {
    const int access = static_cast<int>(shape.access);
    mr_ = ibv_reg_mr_iova(pd, block_->data() + shape.offset, shape.length, Iova(), access);
    if (mr_ == nullptr) Die(std::string("no region: ") + std::strerror(errno));
    Count(Did::kReg);
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() {
    if (ibv_dereg_mr(mr_) != 0) Die("cannot deregister");
    Count(Did::kDereg);
  }

  Block& block() const { return *block_; }
  const std::shared_ptr<Block>& shared_block() const { return block_; }
  std::size_t length() const { return shape_.length; }
  unsigned access() const { return shape_.access; }
  std::uint32_t key() const { return mr_->lkey; }
  bool invalidated() const { return invalidated_; }
  void Invalidate() { invalidated_ = true; }
  bool Allows(unsigned right) const { return !invalidated_ && (shape_.access & right) == right; }

  std::uint64_t Address(std::size_t offset) const { return shape_.base + offset; }
  // Of a byte of it in the block.
  std::size_t Place(std::size_t offset) const { return shape_.offset + offset; }

  // Other rights for the same bytes.
  void ChangeAccess(unsigned access) {
    Rereg(IBV_REREG_MR_CHANGE_ACCESS, nullptr, access);
    shape_.access = access;
  }

  void ChangePd(ibv_pd* pd) { Rereg(IBV_REREG_MR_CHANGE_PD, pd, 0); }

  // Other bytes, with the same rights; the library knows no iova here.
  void ChangeTranslation(std::shared_ptr<Block> block, std::size_t offset, std::size_t length) {
    block_ = std::move(block);
    shape_.offset = offset;
    shape_.length = length;
    shape_.base = (shape_.access & IBV_ACCESS_ZERO_BASED) != 0
                      ? 0
                      : reinterpret_cast<std::uintptr_t>(block_->data() + offset);
    Rereg(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, 0);
  }

 private:
  // Where it is zero-based, its place in the page counts.
  std::uint64_t Iova() const {
    if ((shape_.access & IBV_ACCESS_ZERO_BASED) == 0) return shape_.base;
    return reinterpret_cast<std::uintptr_t>(block_->data() + shape_.offset);
  }

  void Rereg(int flags, ibv_pd* pd, unsigned access) {
    const std::uint32_t before = mr_->lkey;
    const int failed = ibv_rereg_mr(mr_, flags, pd, block_->data() + shape_.offset, shape_.length,
                                    static_cast<int>(access));
    if (failed != 0) Die(std::string("cannot change a region: ") + std::strerror(errno));
    invalidated_ = false;
    Count(mr_->lkey == before ? Did::kReregInPlace : Did::kReregAnew);
  }

  std::shared_ptr<Block> block_;
  Shape shape_;
  ibv_mr* mr_ = nullptr;
  bool invalidated_ = false;
};

#endif  // TESTS_GUEST_LAB_REGION_H_
