// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Strong types for times and sizes, and how people write them.

#ifndef MRSCOPE_UNITS_H_
#define MRSCOPE_UNITS_H_

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "mrscope/result.h"

namespace mrscope {

using Nanoseconds = std::chrono::nanoseconds;

struct Bytes {
  std::uint64_t value = 0;

  constexpr auto operator<=>(const Bytes&) const = default;  // NOLINT(modernize-use-nullptr)
  constexpr Bytes operator+(Bytes other) const { return {value + other.value}; }
};

inline constexpr Bytes kKiB{1ULL << 10};
inline constexpr Bytes kMiB{1ULL << 20};
inline constexpr Bytes kGiB{1ULL << 30};

// Rounds up to a multiple of `unit`, which is a power of two.
constexpr Bytes RoundUp(Bytes size, Bytes unit) {
  return {(size.value + unit.value - 1) & ~(unit.value - 1)};
}

// The caller's clock, the same as the module's: CLOCK_MONOTONIC.
Nanoseconds MonotonicNow();

// "4096", "4K", "64M", "1G", "2T", also "64MiB"; powers of 1024. Fails with
// kUsage on anything else, on 0 and on overflow.
Result<Bytes> ParseSize(std::string_view text);

// "64 MiB", "1.5 GiB", "100 B".
std::string FormatBytes(Bytes size);

// "1 page", "3 pages", "2 entries", "2 batches".
std::string FormatCount(std::uint64_t number, std::string_view noun);

// "850 ns", "12.3 us", "4.56 ms", "1.20 s".
std::string FormatTime(Nanoseconds time);

}  // namespace mrscope

#endif  // MRSCOPE_UNITS_H_
