// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/module.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <cerrno>
#include <utility>

namespace mrscope {
namespace {

std::string_view Word(const std::vector<std::string_view>& words, std::size_t index) {
  return index < words.size() ? words[index] : std::string_view{};
}

std::optional<bool> Flag(std::string_view word) {
  if (word == "1" || word == "Y") return true;
  if (word == "0" || word == "N") return false;
  return std::nullopt;
}

std::optional<Nanoseconds> Cost(const std::vector<std::string_view>& words, std::string_view key) {
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    if (words[i] != key) continue;
    if (const auto ns = ParseNumber(words[i + 1])) return Nanoseconds(*ns);
  }
  return std::nullopt;
}

// boundary <name> <armed|unarmed> <symbol or -> <hits> <missed> [reason]
std::optional<BoundaryStatus> ParseBoundary(std::string_view line,
                                            const std::vector<std::string_view>& words) {
  if (words.size() < 3) return std::nullopt;
  BoundaryStatus boundary;
  boundary.name = words[1];
  boundary.armed = words[2] == "armed";
  boundary.symbol = words.size() > 3 ? words[3] : "-";
  boundary.hits = ParseNumber(Word(words, 4));
  boundary.missed = ParseNumber(Word(words, 5));
  if (words.size() > 6) {
    boundary.reason = line.substr(static_cast<std::size_t>(words[6].data() - line.data()));
  }
  return boundary;
}

}  // namespace

std::string LoadCommand(const std::string& root) {
  utsname names{};
  if (uname(&names) == 0) {
    const auto modules =
        ReadFile(fmt::format("{}/lib/modules/{}/modules.dep", root, names.release));
    if (modules && modules->find("/mrscope.ko") != std::string::npos) return "modprobe mrscope";
  }
  return "insmod mrscope.ko";
}

ModuleStatus ParseModuleStatus(std::string_view text) {
  ModuleStatus status;
  for (const std::string_view raw : Split(text, '\n')) {
    const std::string_view line = Trim(raw);
    const auto words = Split(line, ' ');
    const std::string_view keyword = Word(words, 0);
    const std::string_view value = Word(words, 1);
    if (keyword == "mrscope") {
      status.version = value;
    } else if (keyword == "enabled") {
      status.enabled = Flag(value);
    } else if (keyword == "deep") {
      status.deep = Flag(value);
    } else if (keyword == "keys") {
      status.keys = Flag(value);
    } else if (keyword == "clock") {
      // The rest of the line: it may say how the clock is made.
      if (!value.empty())
        status.clock = line.substr(static_cast<std::size_t>(value.data() - line.data()));
    } else if (keyword == "records") {
      status.records = ParseNumber(value);
    } else if (keyword == "lost") {
      status.lost = ParseNumber(value);
    } else if (keyword == "contexts") {
      status.in_flight = ParseNumber(value);
      status.contexts = ParseNumber(Word(words, 2));
    } else if (keyword == "probe_cost") {
      status.cost_entry = Cost(words, "entry");
      status.cost_pair = Cost(words, "pair");
      status.cost_record = Cost(words, "record");
    } else if (keyword == "filter_tgid") {
      status.filter_tgid = ParseNumber(value);
    } else if (keyword == "filter_min_ns") {
      if (const auto ns = ParseNumber(value)) status.filter_min = Nanoseconds(*ns);
    } else if (keyword == "filter_device" && !value.empty()) {
      status.filter_device = value == "-" ? "" : value;
    } else if (keyword == "device" && words.size() >= 2) {
      status.devices.push_back({std::string(value), std::string(Word(words, 2))});
    } else if (keyword == "boundary") {
      if (auto boundary = ParseBoundary(line, words)) {
        status.boundaries.push_back(*std::move(boundary));
      }
    }
  }
  return status;
}

std::vector<SetFilter> ModuleStatus::SetFilters() const {
  std::vector<SetFilter> set;
  const auto add = [&](std::string_view name, const auto& value, std::string_view none) {
    set.push_back({fmt::format("{} {}", name, value),
                   fmt::format("echo {} > /sys/kernel/debug/mrscope/{}", none, name)});
  };
  if (filter_tgid.value_or(0) != 0) add("filter_tgid", *filter_tgid, "0");
  if (filter_min.value_or(Nanoseconds{0}).count() != 0) {
    add("filter_min_ns", filter_min->count(), "0");
  }
  if (!filter_device.value_or("").empty()) add("filter_device", *filter_device, "''");
  return set;
}

Module::Module(std::string root) : root_(std::move(root)) {}

bool Module::loaded() const { return Exists(root_ + "/sys/module/mrscope"); }

std::string Module::debugfs_dir() const { return root_ + "/sys/kernel/debug/mrscope"; }

std::string Module::keys_path() const { return root_ + "/sys/module/mrscope/parameters/keys"; }

Result<ModuleStatus> Module::ReadStatus() const {
  const auto text = ReadFile(debugfs_dir() + "/status");
  if (!text) return text.error();
  return ParseModuleStatus(*text);
}

Result<std::string> Module::SelfTest() const {
  const auto text = ReadFile(debugfs_dir() + "/selftest");
  if (!text) return text.error();
  return std::string(Trim(std::string_view(*text).substr(0, text->find('\n'))));
}

Result<void> Module::CheckSelfTest() const {
  const auto verdict = SelfTest();
  if (!verdict) {
    return Error{ErrorKind::kPrerequisite, verdict.error().code,
                 verdict.error().message + ": run as root with this version's mrscope.ko loaded"};
  }
  if (*verdict == "pass") return {};
  const std::string kprobes = "/sys/kernel/debug/kprobes/enabled";
  const std::string ftrace = "/proc/sys/kernel/ftrace_enabled";
  std::string remedy = "mr_probe status says more, or reload mrscope.ko";
  if (ReadLine(root_ + kprobes) == "0") {
    remedy = "echo 1 > " + kprobes;
  } else if (ReadLine(root_ + ftrace) == "0") {
    remedy = "echo 1 > " + ftrace;
  }
  return Error{
      ErrorKind::kPrerequisite, 0,
      fmt::format("mrscope.ko would miss registrations (self-test: {}): {}", *verdict, remedy)};
}

Result<UniqueFd> Module::Hold() const {
  const std::string path = debugfs_dir() + "/status";
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.ok()) {
    const int error = errno;
    return Error{
        ErrorKind::kPrerequisite, error,
        fmt::format("cannot open {}: {}; {}", path, ErrnoText(error),
                    error == EACCES || error == EPERM
                        ? "run as root"
                        : "mount debugfs with \"mount -t debugfs none /sys/kernel/debug\"")};
  }
  return fd;
}

std::optional<bool> Module::keys() const { return Flag(ReadLine(keys_path()).value_or("")); }

Result<void> Module::SwitchKeys(bool on) const {
  if (WriteFile(keys_path(), on ? "Y" : "N")) return {};
  return Error{ErrorKind::kPrerequisite, 0,
               fmt::format("cannot ask for whole keys through {}: run as root with this "
                           "version's mrscope.ko loaded, or leave --keys out",
                           keys_path())};
}

}  // namespace mrscope
