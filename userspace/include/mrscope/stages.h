// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The stages of a registration and of a deregistration, and the times of one
// operation. Three states are never mixed: no value is "not observed", zero is
// "did not happen", and a merged stage has no value because its time is
// contained in that of an earlier one.

#ifndef MRSCOPE_STAGES_H_
#define MRSCOPE_STAGES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "mrscope/units.h"

namespace mrscope {

// In the order of time. The first and the last lie in user space and are known
// only where the caller took the time itself.
enum class RegStage : std::uint8_t {
  kLibrary,
  kSyscall,
  kUverbs,
  kPrepare,
  kKey,
  kAccount,
  kPin,
  kSg,
  kDma,
  kAttach,
  kTable,
  kPublish,
  kUnwind,
  kReturn,
};
inline constexpr std::size_t kRegStages = 14;

enum class DeregStage : std::uint8_t {
  kLibrary,
  kSyscall,
  kUverbs,
  kInvalidate,
  kUnmap,
  kUnpin,
  kFree,
  kReturn,
};
inline constexpr std::size_t kDeregStages = 8;

std::span<const std::string_view> RegStageNames();
std::span<const std::string_view> DeregStageNames();

constexpr std::size_t Index(RegStage stage) { return static_cast<std::size_t>(stage); }
constexpr std::size_t Index(DeregStage stage) { return static_cast<std::size_t>(stage); }

class StageTimes {
 public:
  // `names` must outlive the object; the two functions above give such spans.
  explicit StageTimes(std::span<const std::string_view> names);

  std::size_t size() const { return names_.size(); }
  std::span<const std::string_view> names() const { return names_; }

  void Set(std::size_t stage, Nanoseconds time);
  // The time of `stage` is contained in that of `carrier`, an earlier one.
  void Merge(std::size_t stage, std::size_t carrier);

  std::optional<Nanoseconds> Get(std::size_t stage) const;
  // The stage whose time contains this one's, if it is merged.
  std::optional<std::size_t> Carrier(std::size_t stage) const;
  Nanoseconds Sum() const;
  // Each group: the stage that carries the time, then those merged into it.
  std::vector<std::vector<std::size_t>> MergedGroups() const;

 private:
  std::span<const std::string_view> names_;
  std::array<std::optional<Nanoseconds>, kRegStages> times_;
  std::array<std::int8_t, kRegStages> carrier_;
};

}  // namespace mrscope

#endif  // MRSCOPE_STAGES_H_
