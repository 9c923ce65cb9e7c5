// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// mrscope.ko as user space sees it: its debugfs files and module parameters.

#ifndef MRSCOPE_MODULE_H_
#define MRSCOPE_MODULE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mrscope/file.h"
#include "mrscope/result.h"
#include "mrscope/units.h"

namespace mrscope {

// The command that loads mrscope.ko here: modprobe where it is installed for the
// running kernel, else insmod.
std::string LoadCommand(const std::string& root = "");

struct BoundaryStatus {
  std::string name;
  bool armed = false;
  std::string symbol;  // "-" where there is none
  std::optional<std::uint64_t> hits;
  std::optional<std::uint64_t> missed;
  std::string reason;  // why it is not armed; may be empty
};

struct DeviceStatus {
  std::string name;
  std::string driver;
};

// A filter that is set: records that do not pass are in no event.
struct SetFilter {
  std::string setting;  // "filter_tgid 7"
  std::string remedy;   // the command that clears it
};

// The file `status`. What the module does not say is nullopt.
struct ModuleStatus {
  std::string version;
  std::optional<bool> enabled;
  std::optional<bool> deep;
  std::optional<bool> keys;
  std::string clock;
  std::optional<std::uint64_t> records;
  std::optional<std::uint64_t> lost;
  std::optional<std::uint64_t> in_flight;
  std::optional<std::uint64_t> contexts;
  std::optional<Nanoseconds> cost_entry;  // calibrated, of one probe
  std::optional<Nanoseconds> cost_pair;
  std::optional<Nanoseconds> cost_record;
  std::optional<std::uint64_t> filter_tgid;  // 0: none
  std::optional<Nanoseconds> filter_min;     // 0: none
  std::optional<std::string> filter_device;  // "": none
  std::vector<DeviceStatus> devices;
  std::vector<BoundaryStatus> boundaries;

  std::vector<SetFilter> SetFilters() const;
};

// Line by line, keyword first; unknown keywords and short lines are skipped.
ModuleStatus ParseModuleStatus(std::string_view text);

class Module {
 public:
  // `root` is put before every path; tests pass a tree of their own.
  explicit Module(std::string root = "");

  bool loaded() const;
  Result<ModuleStatus> ReadStatus() const;
  // Runs the module's self-test: "pass", or "fail: why".
  Result<std::string> SelfTest() const;
  // kPrerequisite with a remedy unless the self-test passes: a capture would be
  // empty without saying why.
  Result<void> CheckSelfTest() const;
  // An open file of the module, so that rmmod says "in use" meanwhile.
  Result<UniqueFd> Hold() const;

  // Whether records carry whole keys; nullopt where that cannot be read.
  std::optional<bool> keys() const;
  Result<void> SwitchKeys(bool on) const;

  std::string keys_path() const;
  std::string debugfs_dir() const;

 private:
  std::string root_;
};

}  // namespace mrscope

#endif  // MRSCOPE_MODULE_H_
