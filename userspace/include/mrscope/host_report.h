// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What an owner of a device can send to others: what is observable there, and
// what a few registrations on each device showed. It holds no keys, no
// addresses, no names of hosts, users or processes.

#ifndef MRSCOPE_HOST_REPORT_H_
#define MRSCOPE_HOST_REPORT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mrscope/explain.h"
#include "mrscope/host_status.h"
#include "mrscope/verbs.h"

namespace mrscope {

// A few registrations of one manner.
struct Trial {
  std::string name;   // "anon 4 KiB", "unmapped", ...
  std::string error;  // why it could not be tried; then there are no cases
  std::vector<ExplainCase> cases;
};

struct DeviceReport {
  DeviceIdentity identity;
  std::vector<Trial> trials;
};

struct HostReport {
  HostStatus status;
  std::vector<DeviceReport> devices;
};

// `progress` is called before each trial with its device and name.
HostReport CollectHostReport(
    const std::function<void(const std::string& device, const std::string& trial)>& progress);

}  // namespace mrscope

#endif  // MRSCOPE_HOST_REPORT_H_
