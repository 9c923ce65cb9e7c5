// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Memory that the kernel is told of, amid much that is not there: an address that
// a mutation has changed a little leads to nothing of the program's own.

#ifndef TESTS_GUEST_FUZZ_ARENA_H_
#define TESTS_GUEST_FUZZ_ARENA_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "device.h"

class Arena {
 public:
  static constexpr std::size_t kAnswer = std::size_t{64} << 10;
  static constexpr std::size_t kMemory = std::size_t{2} << 20;

  Arena() {
    void* reserved =
        mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) Die("cannot reserve addresses");
    base_ = static_cast<std::uint8_t*>(reserved);
    Allow(answer(), kAnswer);
    Allow(memory(), kMemory);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { munmap(base_, kReserved); }

  // Where answers go.
  std::uint8_t* answer() const { return base_ + kReserved / 4; }
  // What is registered.
  std::uint8_t* memory() const { return base_ + kReserved / 2; }
  // What is not there.
  std::uint8_t* nothing() const { return base_; }

 private:
  static constexpr std::size_t kReserved = std::size_t{16} << 30;

  static void Allow(void* at, std::size_t length) {
    if (mprotect(at, length, PROT_READ | PROT_WRITE) != 0) Die("cannot use addresses");
  }

  std::uint8_t* base_;
};

#endif  // TESTS_GUEST_FUZZ_ARENA_H_
