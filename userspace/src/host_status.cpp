// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/host_status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "mrscope/file.h"
#include "mrscope/load_refusal.h"
#include "mrscope/verbs.h"

namespace mrscope {
namespace {

Check Ok(std::string name, std::string detail) {
  return {std::move(name), CheckResult::kOk, std::move(detail), "", ""};
}

Check Missing(std::string name, std::string detail, std::string breaks, std::string remedy) {
  return {std::move(name), CheckResult::kMissing, std::move(detail), std::move(breaks),
          std::move(remedy)};
}

Check Reduced(std::string name, std::string detail, std::string breaks, std::string remedy) {
  return {std::move(name), CheckResult::kReduced, std::move(detail), std::move(breaks),
          std::move(remedy)};
}

Check CheckRoot() {
  if (geteuid() == 0) return Ok("root", "running as root");
  return Missing("root", fmt::format("running as uid {}", geteuid()),
                 "trace events and debugfs are readable by root only",
                 "run as root, or use mr_probe explain for the caller's time alone");
}

// A directory that only root may enter looks like a missing one to others.
Check CheckMount(const std::string& name, const std::string& path, bool found,
                 const std::string& breaks, const std::string& remedy) {
  if (found) return Ok(name, path);
  if (geteuid() != 0 && Exists(path)) {
    return Missing(name, path + " is not accessible", breaks, "run as root");
  }
  return Missing(name, "not mounted at " + path, breaks, remedy);
}

Check CheckSwitch(const std::string& name, const std::string& path, const std::string& breaks) {
  const auto value = ReadLine(path);
  if (!value) {
    return Reduced(name, "cannot read " + path, "whether probes can fire is not known",
                   "run as root on a kernel with CONFIG_KPROBES and CONFIG_FUNCTION_TRACER");
  }
  if (*value == "1") return Ok(name, "on");
  return Missing(name, "off", breaks, fmt::format("echo 1 > {}", path));
}

Check CheckDevices(const std::vector<std::string>& devices) {
  if (!devices.empty()) return Ok("devices", fmt::format("{}", fmt::join(devices, ", ")));
  return Missing("devices", "none found by libibverbs", "there is nothing to register memory with",
                 "load a device's driver, or make a software one: modprobe rdma_rxe && rdma link "
                 "add rxe0 type rxe netdev NETDEV");
}

Check CheckUverbs(const std::string& root) {
  if (Exists(root + "/sys/class/infiniband_verbs")) return Ok("ib_uverbs", "present");
  return Missing("ib_uverbs", "not loaded", "no program can register memory", "modprobe ib_uverbs");
}

Check CheckBoundary(const BoundaryStatus& boundary) {
  const std::string name = "boundary " + boundary.name;
  std::string hits;
  if (boundary.hits && boundary.missed) {
    hits = fmt::format(", {} hits, {} missed", *boundary.hits, *boundary.missed);
  }
  if (boundary.armed) return Ok(name, boundary.symbol + hits);
  const std::string detail =
      fmt::format("not armed{}{}", boundary.reason.empty() ? "" : ": ", boundary.reason);
  for (const char* harmless : {"not every kernel", "no device needs it"}) {
    if (boundary.reason.find(harmless) != std::string::npos) return Ok(name, detail);
  }
  const std::string breaks = "the stages it separates are null or merged with their neighbours";
  if (boundary.reason.find("deep mode") != std::string::npos) {
    const bool unmap = name.find("unmap") != std::string::npos;
    return Reduced(name, detail,
                   unmap ? "unmapping and unpinning are not told apart"
                         : "the pin's slow path and migrations are not told apart",
                   "echo 1 > /sys/kernel/debug/mrscope/deep, which costs more for each probe");
  }
  if (boundary.reason.find("disarm") != std::string::npos) {
    return Missing(name, detail, breaks, "echo > /sys/kernel/debug/mrscope/disarm");
  }
  return Reduced(name, detail, breaks,
                 "none where this kernel or driver has no such function; else load the module "
                 "that has it");
}

// Files of debugfs and tracefs are refused to root, too, and a module once loaded
// goes on as before.
std::optional<Check> CheckLockdown(const std::string& root) {
  const std::string level = LockdownLevel(root);
  if (level.empty()) return std::nullopt;
  if (level == "none") return Ok("lockdown", level);
  if (level == "integrity") {
    return Reduced("lockdown", level,
                   "unsigned modules are not loaded, the module's switches in debugfs are closed",
                   "a signed mrscope.ko records all the same; else boot without lockdown");
  }
  return Missing("lockdown", level, "trace events cannot be read, unsigned modules are not loaded",
                 "boot without lockdown=confidentiality");
}

Check CheckFilters(const ModuleStatus& status) {
  std::vector<std::string> settings;
  std::vector<std::string> remedies;
  for (const SetFilter& filter : status.SetFilters()) {
    settings.push_back(filter.setting);
    remedies.push_back(filter.remedy);
  }
  if (settings.empty()) return Ok("filters", status.filter_tgid ? "none" : "unknown");
  return Reduced("filters", fmt::format("{}", fmt::join(settings, ", ")),
                 "explain and record see only what passes",
                 fmt::format("{}", fmt::join(remedies, "; ")));
}

void CheckModule(const Module& module, const HostStatusOptions& options, HostStatus& host) {
  if (!module.loaded()) {
    const auto refusal = FindLoadRefusal(ReadKernelLog(options.root));
    host.checks.push_back(
        Missing("module",
                refusal ? "mrscope.ko is not loaded, the kernel refused it: " + refusal->why
                        : "mrscope.ko is not loaded",
                "no stage inside the kernel can be seen",
                refusal ? refusal->remedy
                        : LoadCommand(options.root) + " (make kmod or mrscope-dkms builds it)"));
    return;
  }
  auto status = module.ReadStatus();
  if (!status) {
    host.checks.push_back(
        Missing("module", "loaded, but " + status.error().message,
                "what is armed is not known, and captures do not start",
                geteuid() != 0 ? "run as root" : "mount -t debugfs none /sys/kernel/debug"));
    return;
  }
  host.module = *std::move(status);
  const ModuleStatus& found = *host.module;
  host.checks.push_back(Ok("module", fmt::format("mrscope {}, clock {}", found.version,
                                                 found.clock.empty() ? "unknown" : found.clock)));
  if (found.enabled == false) {
    host.checks.push_back(Missing("enabled", "the observer is switched off", "nothing is recorded",
                                  fmt::format("echo 1 > {}/enabled", module.debugfs_dir())));
  } else {
    host.checks.push_back(Ok("enabled", "the observer is on"));
  }
  host.checks.push_back(CheckFilters(found));
  for (const BoundaryStatus& boundary : found.boundaries) {
    host.checks.push_back(CheckBoundary(boundary));
  }
  if (!options.run_selftest) return;
  const auto selftest = module.SelfTest();
  if (selftest && *selftest == "pass") {
    host.checks.push_back(Ok("selftest", "pass"));
  } else {
    host.checks.push_back(
        Missing("selftest", selftest ? *selftest : selftest.error().message,
                "probes that are armed do not fire: records lack stages without notice",
                "check kprobes and ftrace above, then reload mrscope.ko"));
  }
}

}  // namespace

bool HostStatus::observable() const {
  return std::all_of(checks.begin(), checks.end(),
                     [](const Check& check) { return check.result != CheckResult::kMissing; });
}

HostStatus CollectHostStatus(const HostStatusOptions& options) {
  const std::string& root = options.root;
  HostStatus host;
  host.environment = CollectEnvironment(root);
  host.checks.push_back(CheckRoot());
  const std::string tracing = root + "/sys/kernel/tracing";
  host.checks.push_back(CheckMount(
      "tracefs", tracing,
      Exists(tracing + "/instances") || Exists(root + "/sys/kernel/debug/tracing/instances"),
      "trace events cannot be read", "mount -t tracefs none /sys/kernel/tracing"));
  const std::string debugfs = root + "/sys/kernel/debug";
  // An empty mount point has no kprobes folder, nor anything else.
  const bool debugfs_mounted =
      Exists(debugfs + "/kprobes") || Exists(debugfs + "/mrscope") || Exists(debugfs + "/tracing");
  host.checks.push_back(CheckMount("debugfs", debugfs, debugfs_mounted,
                                   "the module's status cannot be read",
                                   "mount -t debugfs none /sys/kernel/debug"));
  host.checks.push_back(
      CheckSwitch("kprobes", debugfs + "/kprobes/enabled", "no probe fires, and nothing says so"));
  host.checks.push_back(CheckSwitch("ftrace", root + "/proc/sys/kernel/ftrace_enabled",
                                    "probes at function entries do not fire"));
  if (auto lockdown = CheckLockdown(root)) host.checks.push_back(*std::move(lockdown));
  host.checks.push_back(CheckUverbs(root));
  if (options.look_for_devices) {
    host.devices = DeviceNames();
    host.checks.push_back(CheckDevices(host.devices));
  }
  CheckModule(Module(root), options, host);
  return host;
}

}  // namespace mrscope
