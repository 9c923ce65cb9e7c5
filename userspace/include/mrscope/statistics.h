// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Order statistics by nearest rank: every figure is one that was measured.

#ifndef MRSCOPE_STATISTICS_H_
#define MRSCOPE_STATISTICS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "mrscope/operation.h"
#include "mrscope/units.h"

namespace mrscope {

struct Distribution {
  std::size_t count = 0;
  Nanoseconds min{0};
  Nanoseconds p50{0};
  Nanoseconds p99{0};
  Nanoseconds max{0};
  Nanoseconds sum{0};
};

// The smallest value that at least `percent` % of the values do not exceed.
// `sorted` is ascending and not empty; percent is in (0, 100].
Nanoseconds NearestRank(const std::vector<Nanoseconds>& sorted, double percent);

// nullopt of no values.
std::optional<Distribution> Describe(std::vector<Nanoseconds> values);

struct Summary {
  std::optional<Distribution> total;
  // By stage, over the operations in which it was observed.
  std::vector<std::optional<Distribution>> stages;
};

// Of the successful operations; all have the same stages.
Summary Summarize(const std::vector<Operation>& operations);

}  // namespace mrscope

#endif  // MRSCOPE_STATISTICS_H_
