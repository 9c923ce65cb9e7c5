// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Verbs objects as RAII. Each holds what it was made from, so they may be
// destroyed in any order. Errors carry the errno of the verbs call.

#ifndef MRSCOPE_VERBS_H_
#define MRSCOPE_VERBS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mrscope/result.h"
#include "mrscope/units.h"

struct ibv_context;
struct ibv_mr;
struct ibv_pd;

namespace mrscope {

// When the caller entered and left a verbs call, CLOCK_MONOTONIC.
struct CallTime {
  Nanoseconds start{0};
  Nanoseconds end{0};
};

// Names of all RDMA devices that libibverbs finds; empty where there is none.
std::vector<std::string> DeviceNames();

// What a device is, from ibv_query_device(); "" and 0 where it does not say.
struct DeviceIdentity {
  std::string name;
  std::string firmware;
  std::uint32_t vendor_id = 0;
  std::uint32_t part_id = 0;
};

// Of all devices that can be opened.
std::vector<DeviceIdentity> DeviceIdentities();

class Context {
 public:
  // An empty name takes the first device with an active port, else the first.
  // kPrerequisite where there is none, or not that one, or no permission.
  static Result<Context> Open(std::string_view name);

  ibv_context* get() const { return context_.get(); }
  std::string name() const;
  bool active() const { return active_; }
  std::uint64_t max_mr_size() const { return max_mr_size_; }

 private:
  std::shared_ptr<ibv_context> context_;
  bool active_ = false;
  std::uint64_t max_mr_size_ = 0;
};

class ProtectionDomain {
 public:
  static Result<ProtectionDomain> Allocate(const Context& context);
  ibv_pd* get() const { return pd_.get(); }

 private:
  std::shared_ptr<ibv_pd> pd_;
};

// Deregisters itself; Deregister() does so where its outcome matters.
class MemoryRegion {
 public:
  // The memory stays the caller's and must outlive the region. `time` is taken
  // right around ibv_reg_mr() and is set on failure too.
  static Result<MemoryRegion> Register(const ProtectionDomain& pd, void* addr, Bytes length,
                                       std::uint32_t access, CallTime& time);
  MemoryRegion(MemoryRegion&& other) noexcept;
  MemoryRegion& operator=(MemoryRegion&&) = delete;
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;
  ~MemoryRegion();

  // `time` is taken right around ibv_dereg_mr(). Afterwards the region is
  // empty, also on failure.
  Result<void> Deregister(CallTime& time);

  std::uint32_t lkey() const { return lkey_; }
  std::uint32_t rkey() const { return rkey_; }

 private:
  MemoryRegion(ProtectionDomain pd, ibv_mr* mr);

  ProtectionDomain pd_;
  ibv_mr* mr_;
  std::uint32_t lkey_;
  std::uint32_t rkey_;
};

}  // namespace mrscope

#endif  // MRSCOPE_VERBS_H_
