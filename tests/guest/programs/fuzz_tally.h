// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// How often each kind of command had each outcome, in memory that the processes
// share, and where each process is.

#ifndef TESTS_GUEST_FUZZ_TALLY_H_
#define TESTS_GUEST_FUZZ_TALLY_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

inline constexpr std::size_t kMostKinds = 64;
inline constexpr std::size_t kMostErrnos = 160;
inline constexpr std::size_t kMostProcesses = 16;

using Counter = std::atomic<std::uint64_t>;
static_assert(Counter::is_always_lock_free);

struct Tally {
  std::array<std::array<Counter, kMostErrnos>, kMostKinds> outcomes{};  // by errno, or 0
  Counter commands{};
  Counter plain{};  // that were not mutated
  Counter plain_good{};
  // Of each process: how many it has begun, and which kind the last one is.
  std::array<Counter, kMostProcesses> begun{};
  std::array<Counter, kMostProcesses> kind{};
};

#endif  // TESTS_GUEST_FUZZ_TALLY_H_
