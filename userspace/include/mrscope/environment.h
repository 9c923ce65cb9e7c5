// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The host, as far as it decides what a registration costs. Two reports can be
// compared only with this beside them.

#ifndef MRSCOPE_ENVIRONMENT_H_
#define MRSCOPE_ENVIRONMENT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "mrscope/units.h"

namespace mrscope {

struct HugePagePool {
  std::uint64_t total = 0;
  std::uint64_t free = 0;
};

// No value, or "unknown" where a word is expected: it could not be found out.
struct Environment {
  std::string date;     // UTC, ISO 8601
  std::string kernel;   // release
  std::string machine;  // as uname -m
  std::optional<std::string> cpu_model;
  std::optional<std::uint64_t> cpus;
  std::optional<bool> hypervisor;
  std::optional<std::uint64_t> numa_nodes;
  Bytes page_size;
  std::optional<Bytes> memory;
  std::string thp = "unknown";  // always, madvise, never
  std::string thp_defrag = "unknown";
  std::optional<HugePagePool> huge_2m;
  std::optional<Bytes> memlock;  // soft limit of this process
  bool memlock_unlimited = false;
  std::optional<bool> ipc_lock;              // CAP_IPC_LOCK is effective
  std::string iommu = "unknown";             // off, passthrough, lazy, strict, mixed
  std::optional<std::string> iommu_cmdline;  // the words of the command line
  std::string libibverbs = "unknown";        // version of the loaded library
  std::string mrscope;                       // version of this program
  std::optional<std::string> module_version;
  std::string clock = "CLOCK_MONOTONIC";
  std::optional<std::string> module_clock;
};

// `root` is put before the paths of /proc and /sys, for tests.
// "none", "integrity", "confidentiality"; "" where this kernel has no lockdown, or
// securityfs is not mounted.
std::string LockdownLevel(const std::string& root = "");

Environment CollectEnvironment(const std::string& root = "");

std::string Version();

}  // namespace mrscope

#endif  // MRSCOPE_ENVIRONMENT_H_
