// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What the processes of lab_stress did, in memory that all of them share.

#ifndef TESTS_GUEST_LAB_COUNTS_H_
#define TESTS_GUEST_LAB_COUNTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

enum class Did : std::size_t {
  kReg,
  kDereg,
  kReregInPlace,
  kReregAnew,
  kWrite,
  kWriteImm,
  kSend,
  kSendImm,
  kSendInvalidate,
  kRead,
  kCompareSwap,
  kFetchAdd,
  kInline,
  kUnreliable,
  kBytes,
  kRefused,
  kUnderWay,
  kCutShort,
  kReconnect,
  kDiscard,
  kPrefetch,
  kFork,
  kProcess,
  kKilled,
  kCounts
};

inline constexpr std::size_t kCounts = static_cast<std::size_t>(Did::kCounts);

inline constexpr std::array<const char*, kCounts> kCountNames = {
    "reg",        "dereg",     "rereg_in_place",
    "rereg_anew",  // a new region, which takes the old one's place
    "write",      "write_imm", "send",           "send_imm", "send_inv",  "read",
    "cas",        "fetch_add", "inline",         "uc",       "bytes",
    "refused",    // requests that had to be, and were
    "under_way",  // transfers that something was taken away from
    "cut_short",  // of these, those that did not come through whole
    "reconnect",  "discard",   "prefetch",       "forks",    "processes", "killed"};

using Counter = std::atomic<std::uint64_t>;
static_assert(Counter::is_always_lock_free);

// A process's life is measured by its steps, not by time, so that it gets
// somewhere however slow the machine is.
inline constexpr std::size_t kMostWorkers = 16;

struct Shared {
  std::array<Counter, kCounts> counts{};
  std::array<Counter, kMostWorkers> steps{};
};

inline Shared* shared = nullptr;

inline void Count(Did what, std::uint64_t number = 1) {
  shared->counts[static_cast<std::size_t>(what)] += number;
}

#endif  // TESTS_GUEST_LAB_COUNTS_H_
