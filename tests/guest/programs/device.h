// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The device and memory that the test programs work with: the device is the
// first one, or what MR_DEVICE names. What goes wrong here is no test result, so
// it ends the program.

#ifndef TESTS_GUEST_DEVICE_H_
#define TESTS_GUEST_DEVICE_H_

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "mrscope/verbs.h"

inline constexpr int kExitBed = 125;

[[noreturn]] inline void Die(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(kExitBed);
}

struct Device {
  Device() : context(Open()), pd(Allocate(context)) {}

  mrscope::Context context;
  mrscope::ProtectionDomain pd;

  static mrscope::Context Open() {
    const char* name = std::getenv("MR_DEVICE");  // NOLINT(concurrency-mt-unsafe)
    auto context = mrscope::Context::Open(name == nullptr ? "" : name);
    if (!context) Die(context.error().message);
    return *std::move(context);
  }
  static mrscope::ProtectionDomain Allocate(const mrscope::Context& context) {
    auto pd = mrscope::ProtectionDomain::Allocate(context);
    if (!pd) Die(pd.error().message);
    return *std::move(pd);
  }
};

// Never unmapped: the programs end soon.
inline char* MapMemory(std::size_t length, int protection = PROT_READ | PROT_WRITE) {
  void* base = mmap(nullptr, length, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) Die("cannot map memory");
  return static_cast<char*>(base);
}

#endif  // TESTS_GUEST_DEVICE_H_
