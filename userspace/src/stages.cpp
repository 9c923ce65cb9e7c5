// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/stages.h"

#include <stdexcept>

#include "mrscope.h"

namespace mrscope {
namespace {

constexpr std::array<std::string_view, kRegStages> kRegNames = {"library", MRSCOPE_REG_STAGE_NAMES,
                                                                "return"};
constexpr std::array<std::string_view, kDeregStages> kDeregNames = {
    "library", MRSCOPE_DEREG_STAGE_NAMES, "return"};

// A kernel stage keeps its number, shifted by the one that precedes them all.
static_assert(MRSCOPE_REG_STAGES + 2 == kRegStages);
static_assert(MRSCOPE_DEREG_STAGES + 2 == kDeregStages);
static_assert(MRSCOPE_REG_PIN + 1 == static_cast<int>(RegStage::kPin));
static_assert(MRSCOPE_REG_UNWIND + 1 == static_cast<int>(RegStage::kUnwind));
static_assert(MRSCOPE_DEREG_FREE + 1 == static_cast<int>(DeregStage::kFree));
static_assert(kDeregStages <= kRegStages);

}  // namespace

std::span<const std::string_view> RegStageNames() { return kRegNames; }
std::span<const std::string_view> DeregStageNames() { return kDeregNames; }

StageTimes::StageTimes(std::span<const std::string_view> names) : names_(names), carrier_() {
  if (names.size() > kRegStages) throw std::logic_error("more stages than any operation has");
  carrier_.fill(-1);
}

void StageTimes::Set(std::size_t stage, Nanoseconds time) {
  times_.at(stage) = time;
  carrier_.at(stage) = -1;
}

void StageTimes::Merge(std::size_t stage, std::size_t carrier) {
  if (carrier >= stage) throw std::logic_error("a stage merges into an earlier one");
  times_.at(stage).reset();
  carrier_.at(stage) = static_cast<std::int8_t>(carrier);
}

std::optional<Nanoseconds> StageTimes::Get(std::size_t stage) const { return times_.at(stage); }

std::optional<std::size_t> StageTimes::Carrier(std::size_t stage) const {
  if (carrier_.at(stage) < 0) return std::nullopt;
  return static_cast<std::size_t>(carrier_.at(stage));
}

Nanoseconds StageTimes::Sum() const {
  Nanoseconds sum{0};
  for (const auto& time : times_) sum += time.value_or(Nanoseconds{0});
  return sum;
}

std::vector<std::vector<std::size_t>> StageTimes::MergedGroups() const {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t carrier = 0; carrier < size(); ++carrier) {
    std::vector<std::size_t> group{carrier};
    for (std::size_t stage = carrier + 1; stage < size(); ++stage) {
      if (Carrier(stage) == carrier) group.push_back(stage);
    }
    if (group.size() > 1) groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace mrscope
