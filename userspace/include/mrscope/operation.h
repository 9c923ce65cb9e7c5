// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The report model: one registration or deregistration, of whatever command,
// with the kernel's record and the caller's own time brought together.

#ifndef MRSCOPE_OPERATION_H_
#define MRSCOPE_OPERATION_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "mrscope/record.h"
#include "mrscope/stages.h"
#include "mrscope/units.h"

namespace mrscope {

// What the caller knows about its own verbs call.
struct UserCall {
  Op op = Op::kReg;
  pid_t vtid = 0;  // of the calling thread, in its own pid namespace
  std::uint64_t addr = 0;
  std::uint64_t length = 0;
  std::uint32_t access = 0;
  Nanoseconds start{0};  // CLOCK_MONOTONIC right before the call
  Nanoseconds end{0};    // and right after
  int error = 0;         // errno of the call, 0 on success
  std::optional<std::uint32_t> lkey;
  std::optional<std::uint32_t> rkey;
};

// How the caller's call and the kernel's record were brought together.
enum class JoinState : std::uint8_t {
  kNone,         // no caller's time was taken
  kExact,        // by thread, operation, address, length and time
  kByTime,       // the kernel did not see the address: by thread and time
  kNoRecord,     // the call has no kernel record
  kAmbiguous,    // several records fit, so none was taken
  kKeyMismatch,  // one record fits but has another lkey, so it was not taken
};
std::string_view JoinName(JoinState state);

struct Task {
  pid_t pid = 0;
  pid_t tid = 0;
  std::string comm;
};

// No value means: not observed.
struct Operation {
  explicit Operation(Op operation);

  Op op;
  Nanoseconds total{0};  // the caller's where there is one, else the kernel's
  std::optional<Nanoseconds> kernel_total;
  std::optional<Nanoseconds> probe_cost;
  StageTimes stages;  // sum up to `total` exactly
  JoinState join = JoinState::kNone;
  bool incomplete = false;

  std::optional<std::uint64_t> seq;
  Nanoseconds start{0};  // CLOCK_MONOTONIC
  std::optional<std::uint64_t> addr, length, iova;
  std::optional<std::uint64_t> pages, page_size, pin_batches, sg_entries, dma_entries;
  std::optional<std::uint64_t> faults_minor, faults_major, nvcsw, nivcsw;
  std::optional<Nanoseconds> slow_time;  // deep mode only, as the next two
  std::optional<std::uint64_t> slow_calls, migrations;
  std::optional<std::uint32_t> access;
  std::optional<std::uint32_t> lkey, rkey;
  bool whole_keys = false;   // lkey and rkey carry the variant, not only the index
  std::optional<int> error;  // a positive errno; no value on success
  std::optional<std::size_t> failed_stage;

  std::optional<Task> task;   // that executed it, in the initial pid namespace
  std::optional<Task> owner;  // that registered the memory (tid is 0); dereg only
  std::string device;         // "" where unknown
  std::string entry;
  std::string purpose;  // "" for a deregistration
  bool nested = false;

  bool is_dereg() const { return op == Op::kDereg; }
  bool failed() const { return error.has_value(); }
};

// What the kernel alone knows; library and return are not observed.
Operation MakeOperation(const KernelRecord& record);

// What the caller alone knows: `library` holds the whole time, every other
// stage is merged into it.
Operation MakeUserOperation(const UserCall& call, JoinState why);

// Both. The caller's time must contain the record's.
Operation MakeJoinedOperation(const KernelRecord& record, const UserCall& call, JoinState how);

}  // namespace mrscope

#endif  // MRSCOPE_OPERATION_H_
