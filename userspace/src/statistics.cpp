// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/statistics.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace mrscope {

Nanoseconds NearestRank(const std::vector<Nanoseconds>& sorted, double percent) {
  if (sorted.empty() || percent <= 0 || percent > 100) {
    throw std::logic_error("no such rank");
  }
  const double rank = std::ceil(percent / 100 * static_cast<double>(sorted.size()));
  return sorted.at(static_cast<std::size_t>(rank) - 1);
}

std::optional<Distribution> Describe(std::vector<Nanoseconds> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  Distribution distribution{.count = values.size(),
                            .min = values.front(),
                            .p50 = NearestRank(values, 50),
                            .p99 = NearestRank(values, 99),
                            .max = values.back()};
  for (const Nanoseconds value : values) distribution.sum += value;
  return distribution;
}

Summary Summarize(const std::vector<Operation>& operations) {
  Summary summary;
  if (operations.empty()) return summary;
  const std::size_t stages = operations.front().stages.size();
  std::vector<Nanoseconds> totals;
  std::vector<std::vector<Nanoseconds>> times(stages);
  for (const Operation& operation : operations) {
    if (operation.failed()) continue;
    totals.push_back(operation.total);
    for (std::size_t stage = 0; stage < stages; ++stage) {
      if (const auto time = operation.stages.Get(stage)) times[stage].push_back(*time);
    }
  }
  summary.total = Describe(std::move(totals));
  for (auto& values : times) summary.stages.push_back(Describe(std::move(values)));
  return summary;
}

}  // namespace mrscope
