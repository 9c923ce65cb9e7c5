// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What bounds the memory a process may pin.

#ifndef MRSCOPE_LIMITS_H_
#define MRSCOPE_LIMITS_H_

#include <optional>

#include "mrscope/result.h"
#include "mrscope/units.h"

namespace mrscope {

struct PinLimits {
  std::optional<Bytes> memlock;  // soft RLIMIT_MEMLOCK; nullopt: unlimited
  std::optional<bool> ipc_lock;  // CAP_IPC_LOCK is effective: no limit then
  std::optional<Bytes> pinned;   // VmPin of this process
};

PinLimits CurrentPinLimits();

// Both change this process for good. Root may lower its own limits.
Result<void> SetMemlock(Bytes limit);
Result<void> DropIpcLock();

}  // namespace mrscope

#endif  // MRSCOPE_LIMITS_H_
