// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/environment.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <infiniband/verbs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <set>
#include <vector>

#include "mrscope/file.h"
#include "mrscope/limits.h"
#include "mrscope/module.h"
#include "mrscope_version.h"

namespace mrscope {
namespace {

std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {text.data(), length};
}

// The value behind "key : value" or "key: value" in the first such line.
std::optional<std::string> Keyed(std::string_view text, std::string_view key) {
  for (const std::string_view line : Split(text, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || Trim(line.substr(0, colon)) != key) continue;
    return std::string(Trim(line.substr(colon + 1)));
  }
  return std::nullopt;
}

void ReadCpus(const std::string& root, Environment& environment) {
  if (const long online = sysconf(_SC_NPROCESSORS_ONLN); online > 0) {
    environment.cpus = static_cast<std::uint64_t>(online);
  }
  if (const auto cpuinfo = ReadFile(root + "/proc/cpuinfo")) {
    environment.cpu_model = Keyed(*cpuinfo, "model name");
    // Only x86 has such a flag; its absence elsewhere says nothing.
    if (const auto flags = Keyed(*cpuinfo, "flags")) {
      const auto words = Split(*flags, ' ');
      environment.hypervisor = std::find(words.begin(), words.end(), "hypervisor") != words.end();
    }
  }
  std::uint64_t nodes = 0;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(root + "/sys/devices/system/node", error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("node") && ParseNumber(std::string_view(name).substr(4))) ++nodes;
  }
  if (nodes != 0) environment.numa_nodes = nodes;
}

void ReadMemory(const std::string& root, Environment& environment) {
  environment.page_size = Bytes{static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))};
  if (const auto meminfo = ReadFile(root + "/proc/meminfo")) {
    if (const auto total = Keyed(*meminfo, "MemTotal")) {
      std::string_view number(*total);
      if (number.ends_with(" kB")) number.remove_suffix(3);
      if (const auto kib = ParseNumber(number)) environment.memory = Bytes{*kib * kKiB.value};
    }
  }
  const std::string thp = root + "/sys/kernel/mm/transparent_hugepage/";
  if (const auto line = ReadLine(thp + "enabled")) environment.thp = ChosenWord(*line);
  if (const auto line = ReadLine(thp + "defrag")) environment.thp_defrag = ChosenWord(*line);

  const std::string pool = root + "/sys/kernel/mm/hugepages/hugepages-2048kB/";
  const auto total = ReadLine(pool + "nr_hugepages");
  const auto free = ReadLine(pool + "free_hugepages");
  if (total && free && ParseNumber(*total) && ParseNumber(*free)) {
    environment.huge_2m = HugePagePool{*ParseNumber(*total), *ParseNumber(*free)};
  }
}

std::string ModeOfGroup(std::string_view type) {
  if (type == "identity") return "passthrough";
  if (type == "DMA-FQ") return "lazy";
  if (type == "DMA") return "strict";
  return "unknown";
}

// How DMA addresses come about on this host. A software device (rxe, siw) uses
// none of it.
std::string IommuMode(const std::string& root) {
  std::error_code error;
  const std::string groups_dir = root + "/sys/kernel/iommu_groups";
  if (!std::filesystem::exists(groups_dir, error)) return error ? "unknown" : "off";
  std::set<std::string> modes;
  for (const auto& group : std::filesystem::directory_iterator(groups_dir, error)) {
    modes.insert(ModeOfGroup(ReadLine(group.path() / "type").value_or("")));
  }
  if (error) return "unknown";
  if (modes.empty()) return "off";
  return modes.size() == 1 ? *modes.begin() : "mixed";
}

std::optional<std::string> IommuWords(const std::string& root) {
  const auto line = ReadLine(root + "/proc/cmdline");
  if (!line) return std::nullopt;
  std::vector<std::string_view> words;
  for (const std::string_view word : Split(*line, ' ')) {
    if (word.substr(0, word.find('=')).find("iommu") != std::string_view::npos) {
      words.push_back(word);
    }
  }
  return fmt::format("{}", fmt::join(words, " "));
}

// libibverbs tells its version only by the name of its file,
// libibverbs.so.1.14.VERSION.0.
std::string LibibverbsVersion() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&ibv_get_device_list), &info) == 0 ||
      info.dli_fname == nullptr) {
    return "unknown";
  }
  std::error_code error;
  const std::string file = std::filesystem::canonical(info.dli_fname, error).filename();
  constexpr std::string_view kSuffix = ".so.";
  const auto at = file.find(kSuffix);
  if (error || at == std::string::npos) return "unknown";
  return file.substr(at + kSuffix.size());
}

}  // namespace

std::string Version() { return MRSCOPE_VERSION; }

std::string LockdownLevel(const std::string& root) {
  const auto line = ReadLine(root + "/sys/kernel/security/lockdown");
  return line ? ChosenWord(*line) : "";
}

Environment CollectEnvironment(const std::string& root) {
  Environment environment;
  environment.date = UtcNow();
  utsname names{};
  const bool named = uname(&names) == 0;
  environment.kernel = named ? names.release : "unknown";
  environment.machine = named ? names.machine : "unknown";
  ReadCpus(root, environment);
  ReadMemory(root, environment);
  const PinLimits limits = CurrentPinLimits();
  environment.memlock = limits.memlock;
  environment.memlock_unlimited = !limits.memlock;
  environment.ipc_lock = limits.ipc_lock;
  environment.iommu = IommuMode(root);
  environment.iommu_cmdline = IommuWords(root);
  environment.libibverbs = LibibverbsVersion();
  environment.mrscope = Version();
  if (const auto status = Module(root).ReadStatus()) {
    if (!status->version.empty()) environment.module_version = status->version;
    if (!status->clock.empty()) environment.module_clock = status->clock;
  }
  return environment;
}

}  // namespace mrscope
