// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// One operation as the kernel saw it: the fields of mrscope:mr_reg and
// mrscope:mr_dereg (kmod/include/mrscope.h says what they mean), and what a
// capture delivers besides.

#ifndef MRSCOPE_RECORD_H_
#define MRSCOPE_RECORD_H_

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "mrscope/units.h"

namespace mrscope {

enum class Op : std::uint8_t { kReg, kRegDmabuf, kRereg, kDereg, kUnknown };

// Plain numbers, so that a hundred thousand of them stay cheap. Times in ns of
// CLOCK_MONOTONIC; pids are those of the initial namespace, the v ones those of
// the task's own.
struct KernelRecord {
  std::uint64_t seq = 0;
  std::uint64_t start_ns = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t addr = 0;
  std::uint64_t length = 0;
  std::uint64_t iova = 0;
  Op op = Op::kUnknown;
  std::uint32_t entry = 0;
  std::uint32_t purpose = 0;
  std::uint32_t flags = 0;
  std::uint32_t access = 0;
  std::int32_t ret = 0;
  std::int32_t failed_stage = -1;
  std::uint32_t observed = 0;
  std::uint32_t merged = 0;
  std::array<std::uint64_t, 12> stage_ns{};
  std::uint64_t pages = 0;
  std::uint64_t page_size = 0;
  std::uint64_t pin_batches = 0;
  std::uint64_t sg_entries = 0;
  std::uint64_t dma_entries = 0;
  std::uint64_t faults_minor = 0;
  std::uint64_t faults_major = 0;
  std::uint64_t nvcsw = 0;
  std::uint64_t nivcsw = 0;
  std::uint64_t slow_ns = 0;
  std::uint64_t slow_calls = 0;
  std::uint64_t migrations = 0;
  std::uint64_t probe_cost_ns = 0;
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
  std::int32_t tid = 0;
  std::int32_t tgid = 0;
  std::int32_t vtid = 0;
  std::int32_t vtgid = 0;
  std::int32_t owner_tgid = 0;
  std::array<char, 16> comm{};
  std::array<char, 16> owner_comm{};
  std::array<char, 64> device{};

  bool is_dereg() const { return op == Op::kDereg; }
  bool Has(std::uint32_t flag) const { return (flags & flag) != 0; }
  std::uint64_t end_ns() const { return start_ns + total_ns; }
};

// The text of a fixed array, up to its first NUL.
template <std::size_t N>
std::string_view TextOf(const std::array<char, N>& array) {
  const std::string_view all(array.data(), N);
  return all.substr(0, all.find('\0'));
}

std::string_view OpName(Op op);
std::string_view EntryName(std::uint32_t entry);
std::string_view PurposeName(std::uint32_t purpose);

// Events of the scheduler, for following a process tree. All pids and tids are
// those of the initial namespace.
struct ForkEvent {
  pid_t parent = 0;  // a tid
  pid_t child = 0;   // a tid: fork and thread creation look alike
};
struct ExecEvent {
  pid_t pid = 0;
  std::string filename;
};
struct ExitEvent {
  pid_t tid = 0;
};
// What this capture's own processes wrote to trace_marker.
struct MarkerEvent {
  pid_t tid = 0;
  std::string text;
};

struct CaptureEvent {
  std::uint64_t timestamp_ns = 0;
  std::variant<KernelRecord, ForkEvent, ExecEvent, ExitEvent, MarkerEvent> what;
};

}  // namespace mrscope

#endif  // MRSCOPE_RECORD_H_
