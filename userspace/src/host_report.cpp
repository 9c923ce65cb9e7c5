// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/host_report.h"

#include <array>

namespace mrscope {
namespace {

constexpr unsigned kCount = 5;

struct Manner {
  const char* name;
  const char* buffer;
  Bytes size;
  std::uint32_t access;
  bool unmapped;
};

constexpr std::uint32_t kReadWrite = 0x7;  // local_write, remote_write, remote_read

// A page, more pages than one pin takes, huge pages, a read-only MR (which older
// kernels pin as if it were written), and a failure, for its unwinding.
constexpr std::array kManners = {
    Manner{"anon 4 KiB", "anon", Bytes{4 * kKiB.value}, kReadWrite, false},
    Manner{"anon 4 MiB", "anon", Bytes{4 * kMiB.value}, kReadWrite, false},
    Manner{"thp 4 MiB", "thp", Bytes{4 * kMiB.value}, kReadWrite, false},
    Manner{"anon 64 KiB, no access", "anon", Bytes{64 * kKiB.value}, 0, false},
    Manner{"unmapped 64 KiB", "anon", Bytes{64 * kKiB.value}, kReadWrite, true},
};

Trial Try(const std::string& device, const Manner& manner) {
  ExplainOptions options;
  options.device = device;
  options.size = manner.size;
  options.buffer = manner.buffer;
  options.access = manner.access;
  options.unmapped = manner.unmapped;
  options.touched = !manner.unmapped;
  options.count = kCount;
  options.warmup = 1;
  Trial trial{manner.name, "", {}};
  auto report = RunExplain(options, {});
  if (report) {
    trial.cases = std::move(report->cases);
  } else {
    trial.error = report.error().message;
  }
  return trial;
}

}  // namespace

HostReport CollectHostReport(
    const std::function<void(const std::string& device, const std::string& trial)>& progress) {
  HostReport report;
  for (DeviceIdentity& identity : DeviceIdentities()) {
    DeviceReport device{std::move(identity), {}};
    for (const Manner& manner : kManners) {
      progress(device.identity.name, manner.name);
      device.trials.push_back(Try(device.identity.name, manner));
    }
    report.devices.push_back(std::move(device));
  }
  // Last, so that the boundaries' hits are those of the trials too.
  report.status = CollectHostStatus();
  return report;
}

}  // namespace mrscope
