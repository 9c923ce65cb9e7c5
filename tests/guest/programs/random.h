// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Chance that a seed repeats.

#ifndef TESTS_GUEST_RANDOM_H_
#define TESTS_GUEST_RANDOM_H_

#include <cstdint>
#include <random>

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t Next() { return engine_(); }
  std::uint64_t Below(std::uint64_t limit) { return engine_() % limit; }
  bool Percent(std::uint64_t percent) { return Below(100) < percent; }
  template <typename Container>
  decltype(auto) Of(Container& container) {
    return container[Below(std::size(container))];
  }

 private:
  std::mt19937_64 engine_;
};

#endif  // TESTS_GUEST_RANDOM_H_
