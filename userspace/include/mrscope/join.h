// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Brings the caller's calls and the kernel's records together.

#ifndef MRSCOPE_JOIN_H_
#define MRSCOPE_JOIN_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "mrscope/operation.h"
#include "mrscope/record.h"

namespace mrscope {

struct JoinResult {
  JoinState state = JoinState::kNoRecord;
  std::optional<std::size_t> record;  // index into the records, if joined
};

// One result for each call, in their order. A call and a record belong together
// when thread and operation are the same, the record's time lies within the
// call's, and address and length agree where the kernel saw them. The lkey only
// checks this: a failure has none. What does not fit exactly one record is not
// joined.
std::vector<JoinResult> Join(std::span<const UserCall> calls,
                             std::span<const KernelRecord> records);

// Each call as an operation: joined, or with the caller's time alone.
std::vector<Operation> JoinOperations(std::span<const UserCall> calls,
                                      std::span<const KernelRecord> records);

}  // namespace mrscope

#endif  // MRSCOPE_JOIN_H_
