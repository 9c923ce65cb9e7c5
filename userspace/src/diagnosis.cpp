// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/diagnosis.h"

#include <fmt/format.h>

#include <cerrno>
#include <stdexcept>

#include "mrscope/access.h"
#include "mrscope/file.h"

namespace mrscope {
namespace {

constexpr const char* kRaiseLimit =
    "raise it with \"ulimit -l\", LimitMEMLOCK= of the service or limits.conf, or give "
    "CAP_IPC_LOCK";

std::string LengthOf(const Operation& operation) {
  return operation.length ? FormatBytes(Bytes{*operation.length}) : "the range";
}

std::string MemlockTooSmall(const Operation& operation, const FailureFacts& facts) {
  const std::string needed = LengthOf(operation);
  if (!facts.limits || !facts.limits->memlock) {
    return fmt::format(
        "pinning {} would exceed the process's RLIMIT_MEMLOCK, and it lacks CAP_IPC_LOCK: {}",
        needed, kRaiseLimit);
  }
  std::string pinned;
  if (facts.limits->pinned && facts.limits->pinned->value != 0) {
    pinned = fmt::format(" beside {} pinned already", FormatBytes(*facts.limits->pinned));
  }
  return fmt::format(
      "RLIMIT_MEMLOCK allows {} and {} is needed{}, and the process lacks CAP_IPC_LOCK: {}",
      FormatBytes(*facts.limits->memlock), needed, pinned, kRaiseLimit);
}

std::string MemlockZero(const FailureFacts& facts) {
  const bool zero = facts.limits && facts.limits->memlock && facts.limits->memlock->value == 0;
  return fmt::format("{} and the process lacks CAP_IPC_LOCK, so it may pin nothing at all: {}",
                     zero ? "RLIMIT_MEMLOCK is 0" : "RLIMIT_MEMLOCK is probably 0", kRaiseLimit);
}

std::string CannotPin(const Operation& operation, const FailureFacts& facts) {
  if (facts.mapped == false) {
    return fmt::format(
        "{} at {:#x} is not mapped (any more): register memory before it is freed, "
        "and check address and length",
        LengthOf(operation), operation.addr.value_or(0));
  }
  if (facts.writable == false) {
    return fmt::format(
        "the range is mapped read-only and {} asks for write access: map it writable, or leave "
        "local_write and the remote writes out",
        operation.access ? FormatAccess(*operation.access) : "the registration");
  }
  return "a page of the range is not mapped, is read-only although write access was asked for, or "
         "is a device mapping that cannot be pinned: check the range in /proc/PID/maps (device "
         "memory needs a dmabuf)";
}

std::string Invalid(const Operation& operation, const FailureFacts& facts) {
  if (operation.access && NeedsLocalWrite(*operation.access)) {
    return fmt::format(
        "{} needs local_write: remote write and atomic access imply that the "
        "device writes the memory; add local_write",
        FormatAccess(*operation.access));
  }
  if (facts.max_mr_size && *facts.max_mr_size != 0 && operation.length &&
      *operation.length > *facts.max_mr_size) {
    return fmt::format("the device registers at most {} in one MR and {} was asked: split it",
                       FormatBytes(Bytes{*facts.max_mr_size}), LengthOf(operation));
  }
  return "the core or the driver refused the arguments: check the access flags, the device's "
         "max_mr_size and, for huge pages, that address and length are multiples of the page";
}

std::string OutOfMemory(const Operation& operation, const FailureFacts& facts,
                        std::string_view stage) {
  // The limit is checked before the first page is pinned.
  if (stage == "account") return MemlockTooSmall(operation, facts);
  if (stage == "pin") {
    return "no memory for the pages, or they lie in CMA or movable memory and could not be "
           "migrated out of it for a long-term pin: free memory, or allocate the buffer elsewhere";
  }
  if (stage == "library") {
    return "libibverbs ran out of memory or mappings: its fork support splits mappings by "
           "madvise(MADV_DONTFORK); check vm.max_map_count";
  }
  if (stage.empty() && facts.limits && facts.limits->memlock && facts.limits->ipc_lock == false &&
      operation.length && *operation.length > facts.limits->memlock->value) {
    return MemlockTooSmall(operation, facts);
  }
  return "the kernel or the device ran out of memory for what describes the MR: register less, or "
         "in larger pages";
}

std::string Explain(const Operation& operation, const FailureFacts& facts, std::string_view stage) {
  switch (*operation.error) {
    case ENOMEM:
      return OutOfMemory(operation, facts, stage);
    case EPERM:
      return MemlockZero(facts);
    case EFAULT:
      return CannotPin(operation, facts);
    case EINVAL:
      return Invalid(operation, facts);
    case EINTR:
      return "a fatal signal ended the process while its pages were being pinned; what had been "
             "pinned was released";
    case EAGAIN:
    case ENOSPC:
      return "the device is out of keys or of table space: deregister MRs that are not used, and "
             "look for processes that hold many";
    case EIO:
    case E2BIG:
      return "the device refused the MR, often for its size: compare it with max_mr_size and "
             "split it";
    case EOPNOTSUPP:
      return "the device does not support what was asked: check the access flags (on_demand needs "
             "ODP)";
    default:
      return fmt::format("{}: no more is known than the stage", ErrnoText(*operation.error));
  }
}

}  // namespace

Failure Diagnose(const Operation& operation, const FailureFacts& facts) {
  if (!operation.error) throw std::logic_error("the operation has not failed");
  Failure failure;
  failure.error = ErrnoName(*operation.error);
  if (operation.failed_stage) {
    failure.stage = std::string(operation.stages.names()[*operation.failed_stage]);
  }
  failure.explanation = Explain(operation, facts, failure.stage.value_or(""));
  return failure;
}

}  // namespace mrscope
