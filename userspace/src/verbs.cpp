// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/verbs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <optional>

#include "mrscope/file.h"

namespace mrscope {
namespace {

class DeviceList {
 public:
  DeviceList() : list_(ibv_get_device_list(&count_)) {}
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;
  ~DeviceList() {
    if (list_ != nullptr) ibv_free_device_list(list_);
  }
  std::span<ibv_device* const> devices() const {
    if (list_ == nullptr) return {};
    return {list_, static_cast<std::size_t>(count_)};
  }

 private:
  int count_ = 0;  // before list_, whose initializer sets it
  ibv_device** list_;
};

bool HasActivePort(ibv_context* context, const ibv_device_attr& attributes) {
  for (unsigned port = 1; port <= attributes.phys_port_cnt; ++port) {
    ibv_port_attr state{};
    if (ibv_query_port(context, static_cast<std::uint8_t>(port), &state) == 0 &&
        state.state == IBV_PORT_ACTIVE) {
      return true;
    }
  }
  return false;
}

Error NoDevice() {
  return {ErrorKind::kPrerequisite, ENODEV,
          "no RDMA device on this host: load its driver, or make a software one with \"modprobe "
          "rdma_rxe && rdma link add rxe0 type rxe netdev NETDEV\""};
}

Error CannotOpen(const ibv_device* device, int error) {
  if (error == EACCES || error == EPERM) {
    return {ErrorKind::kPrerequisite, error,
            fmt::format("no permission to open {}: run as root, or grant access to "
                        "/dev/infiniband/{}",
                        device->name, device->dev_name)};
  }
  return {ErrorKind::kPrerequisite, error,
          fmt::format("cannot open the RDMA device {}: {}; check that ib_uverbs is loaded and "
                      "/dev/infiniband/{} exists",
                      device->name, ErrnoText(error), device->dev_name)};
}

}  // namespace

std::vector<std::string> DeviceNames() {
  std::vector<std::string> names;
  const DeviceList list;
  for (ibv_device* device : list.devices()) names.emplace_back(ibv_get_device_name(device));
  return names;
}

std::vector<DeviceIdentity> DeviceIdentities() {
  std::vector<DeviceIdentity> identities;
  for (const std::string& name : DeviceNames()) {
    const auto context = Context::Open(name);
    if (!context) continue;
    DeviceIdentity identity;
    identity.name = name;
    ibv_device_attr attributes{};
    if (ibv_query_device(context->get(), &attributes) == 0) {
      identity.firmware = attributes.fw_ver;
      identity.vendor_id = attributes.vendor_id;
      identity.part_id = attributes.vendor_part_id;
    }
    identities.push_back(std::move(identity));
  }
  return identities;
}

Result<Context> Context::Open(std::string_view name) {
  const DeviceList list;
  if (list.devices().empty()) return NoDevice();

  std::optional<Context> fallback;
  std::optional<Error> failure;
  for (ibv_device* device : list.devices()) {
    if (!name.empty() && name != ibv_get_device_name(device)) continue;
    errno = 0;
    ibv_context* opened = ibv_open_device(device);
    if (opened == nullptr) {
      if (!failure) failure = CannotOpen(device, errno != 0 ? errno : EIO);
      continue;
    }
    Context context;
    context.context_.reset(opened, ibv_close_device);
    ibv_device_attr attributes{};
    if (ibv_query_device(opened, &attributes) == 0) {
      context.max_mr_size_ = attributes.max_mr_size;
      context.active_ = HasActivePort(opened, attributes);
    }
    if (!name.empty() || context.active_) return context;
    if (!fallback) fallback = std::move(context);
  }
  if (fallback) return *std::move(fallback);
  if (failure) return *std::move(failure);
  return Error{ErrorKind::kPrerequisite, ENODEV,
               fmt::format("no RDMA device named \"{}\": this host has {}", name,
                           fmt::join(DeviceNames(), ", "))};
}

std::string Context::name() const { return ibv_get_device_name(context_->device); }

Result<ProtectionDomain> ProtectionDomain::Allocate(const Context& context) {
  errno = 0;
  ibv_pd* pd = ibv_alloc_pd(context.get());
  if (pd == nullptr) {
    const int error = errno;
    return Error{ErrorKind::kFailed, error,
                 fmt::format("cannot allocate a PD on {}: {}", context.name(), ErrnoText(error))};
  }
  ProtectionDomain domain;
  domain.pd_.reset(pd, [context](ibv_pd* dying) { ibv_dealloc_pd(dying); });
  return domain;
}

Result<MemoryRegion> MemoryRegion::Register(const ProtectionDomain& pd, void* addr, Bytes length,
                                            std::uint32_t access, CallTime& time) {
  errno = 0;
  time.start = MonotonicNow();
  ibv_mr* mr = ibv_reg_mr(pd.get(), addr, length.value, access);
  time.end = MonotonicNow();
  if (mr == nullptr) {
    const int error = errno != 0 ? errno : EIO;
    return Error{ErrorKind::kFailed, error,
                 fmt::format("ibv_reg_mr of {} failed: {}", FormatBytes(length), ErrnoName(error))};
  }
  return MemoryRegion(pd, mr);
}

MemoryRegion::MemoryRegion(ProtectionDomain pd, ibv_mr* mr)
    : pd_(std::move(pd)), mr_(mr), lkey_(mr->lkey), rkey_(mr->rkey) {}

MemoryRegion::MemoryRegion(MemoryRegion&& other) noexcept
    : pd_(std::move(other.pd_)),
      mr_(std::exchange(other.mr_, nullptr)),
      lkey_(other.lkey_),
      rkey_(other.rkey_) {}

MemoryRegion::~MemoryRegion() {
  if (mr_ != nullptr) ibv_dereg_mr(mr_);
}

Result<void> MemoryRegion::Deregister(CallTime& time) {
  if (mr_ == nullptr) throw std::logic_error("the region is deregistered already");
  time.start = MonotonicNow();
  const int error = ibv_dereg_mr(std::exchange(mr_, nullptr));
  time.end = MonotonicNow();
  if (error != 0) {
    return Error{ErrorKind::kFailed, error,
                 fmt::format("ibv_dereg_mr failed: {}", ErrnoName(error))};
  }
  return {};
}

}  // namespace mrscope
