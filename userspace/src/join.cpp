// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/join.h"

#include <algorithm>
#include <numeric>

#include "mrscope.h"

namespace mrscope {
namespace {

// An operation of its own that a user may have asked for by a verbs call.
bool IsCandidate(const KernelRecord& record) {
  if (record.Has(MRSCOPE_F_NESTED)) return false;
  if (record.op != Op::kDereg && record.purpose == MRSCOPE_PURPOSE_DRIVER) return false;
  return record.entry == MRSCOPE_ENTRY_IOCTL || record.entry == MRSCOPE_ENTRY_WRITE ||
         record.entry >= MRSCOPE_ENTRY_UNKNOWN;
}

bool SameKey(const UserCall& call, const KernelRecord& record) {
  if (!call.lkey || !record.Has(MRSCOPE_F_LKEY)) return true;
  return record.Has(MRSCOPE_F_KEYS) ? *call.lkey == record.lkey
                                    : *call.lkey >> 8 == record.lkey >> 8;
}

// Records by thread and start, for one look-up a call.
class ByThread {
 public:
  explicit ByThread(std::span<const KernelRecord> records) : records_(records) {
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (IsCandidate(records[i])) order_.push_back(i);
    }
    std::sort(order_.begin(), order_.end(),
              [&](std::size_t a, std::size_t b) { return Key(a) < Key(b); });
  }

  // Indices of the records of `call`'s thread and operation within its time.
  std::vector<std::size_t> Within(const UserCall& call) const {
    std::vector<std::size_t> found;
    const std::pair<std::int32_t, std::uint64_t> first(
        call.vtid, static_cast<std::uint64_t>(call.start.count()));
    const auto end = static_cast<std::uint64_t>(call.end.count());
    auto position = std::lower_bound(order_.begin(), order_.end(), first,
                                     [&](std::size_t i, const auto& key) { return Key(i) < key; });
    for (; position != order_.end(); ++position) {
      const KernelRecord& record = records_[*position];
      if (record.vtid != call.vtid || record.start_ns > end) break;
      if (record.op == call.op && record.end_ns() <= end) found.push_back(*position);
    }
    return found;
  }

 private:
  std::pair<std::int32_t, std::uint64_t> Key(std::size_t i) const {
    return {records_[i].vtid, records_[i].start_ns};
  }

  std::span<const KernelRecord> records_;
  std::vector<std::size_t> order_;
};

JoinResult JoinOne(const UserCall& call, std::span<const KernelRecord> records,
                   const ByThread& by_thread) {
  std::vector<std::size_t> exact;
  std::vector<std::size_t> by_time;
  for (const std::size_t i : by_thread.Within(call)) {
    const KernelRecord& record = records[i];
    if (!record.Has(MRSCOPE_F_ADDR)) {
      by_time.push_back(i);
    } else if (record.addr == call.addr && record.length == call.length) {
      exact.push_back(i);
    }
  }
  const auto& fitting = exact.empty() ? by_time : exact;
  if (fitting.empty()) return {JoinState::kNoRecord, std::nullopt};
  if (fitting.size() > 1) return {JoinState::kAmbiguous, std::nullopt};
  if (!SameKey(call, records[fitting.front()])) return {JoinState::kKeyMismatch, std::nullopt};
  return {exact.empty() ? JoinState::kByTime : JoinState::kExact, fitting.front()};
}

}  // namespace

std::vector<JoinResult> Join(std::span<const UserCall> calls,
                             std::span<const KernelRecord> records) {
  const ByThread by_thread(records);
  std::vector<JoinResult> results;
  results.reserve(calls.size());
  for (const UserCall& call : calls) results.push_back(JoinOne(call, records, by_thread));
  return results;
}

std::vector<Operation> JoinOperations(std::span<const UserCall> calls,
                                      std::span<const KernelRecord> records) {
  std::vector<Operation> operations;
  operations.reserve(calls.size());
  const auto results = Join(calls, records);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    operations.push_back(results[i].record ? MakeJoinedOperation(records[*results[i].record],
                                                                 calls[i], results[i].state)
                                           : MakeUserOperation(calls[i], results[i].state));
  }
  return operations;
}

}  // namespace mrscope
