// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What can be observed on this host, what is missing, and the remedy.

#ifndef MRSCOPE_HOST_STATUS_H_
#define MRSCOPE_HOST_STATUS_H_

#include <optional>
#include <string>
#include <vector>

#include "mrscope/environment.h"
#include "mrscope/module.h"

namespace mrscope {

enum class CheckResult {
  kOk,
  kReduced,  // works, with less to see
  kMissing,
};

struct Check {
  std::string name;
  CheckResult result = CheckResult::kOk;
  std::string detail;  // what was found
  std::string breaks;  // what does not work without it; empty when ok
  std::string remedy;  // empty when ok
};

struct HostStatus {
  Environment environment;
  std::vector<Check> checks;
  std::optional<ModuleStatus> module;
  std::vector<std::string> devices;

  // Nothing is missing. A boundary that this kernel does not have only reduces
  // what there is to see.
  bool observable() const;
};

struct HostStatusOptions {
  std::string root;  // before every path, for tests
  bool run_selftest = true;
  bool look_for_devices = true;
};

HostStatus CollectHostStatus(const HostStatusOptions& options = {});

}  // namespace mrscope

#endif  // MRSCOPE_HOST_STATUS_H_
