// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/limits.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "mrscope/file.h"

namespace mrscope {
namespace {

using CapData = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

constexpr __user_cap_header_struct kSelf = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
constexpr std::uint32_t kIpcLock = 1U << CAP_IPC_LOCK;
static_assert(CAP_IPC_LOCK < 32);

bool GetCaps(CapData& data) {
  auto header = kSelf;
  return syscall(SYS_capget, &header, data.data()) == 0;
}

}  // namespace

PinLimits CurrentPinLimits() {
  PinLimits limits;
  rlimit memlock{};
  if (getrlimit(RLIMIT_MEMLOCK, &memlock) == 0 && memlock.rlim_cur != RLIM_INFINITY) {
    limits.memlock = Bytes{memlock.rlim_cur};
  }
  CapData caps{};
  if (GetCaps(caps)) limits.ipc_lock = (caps[0].effective & kIpcLock) != 0;
  if (const auto status = ReadFile("/proc/self/status")) {
    constexpr std::string_view kKey = "\nVmPin:";
    const auto found = status->find(kKey);
    if (found != std::string::npos) {
      std::string_view value = std::string_view(*status).substr(found + kKey.size());
      value = Trim(value.substr(0, value.find("kB")));
      if (const auto number = ParseNumber(value)) limits.pinned = Bytes{*number * kKiB.value};
    }
  }
  return limits;
}

Result<void> SetMemlock(Bytes limit) {
  const rlimit memlock{.rlim_cur = limit.value, .rlim_max = limit.value};
  if (setrlimit(RLIMIT_MEMLOCK, &memlock) != 0) {
    const int error = errno;
    return Error{
        ErrorKind::kFailed, error,
        fmt::format("cannot set RLIMIT_MEMLOCK to {}: {}", FormatBytes(limit), ErrnoText(error))};
  }
  return {};
}

Result<void> DropIpcLock() {
  CapData caps{};
  auto header = kSelf;
  bool done = GetCaps(caps);
  if (done) {
    caps[0].effective &= ~kIpcLock;
    done = syscall(SYS_capset, &header, caps.data()) == 0;
  }
  if (!done) {
    const int error = errno;
    return Error{ErrorKind::kFailed, error,
                 fmt::format("cannot drop CAP_IPC_LOCK: {}", ErrnoText(error))};
  }
  return {};
}

}  // namespace mrscope
