// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "record_maker.h"

namespace mrscope {
namespace {

std::vector<Nanoseconds> UpTo(int last) {
  std::vector<Nanoseconds> values;
  for (int i = 1; i <= last; ++i) values.emplace_back(i);
  return values;
}

TEST(NearestRankTest, FollowsTheDefinition) {
  EXPECT_EQ(NearestRank(UpTo(1), 50).count(), 1);
  EXPECT_EQ(NearestRank(UpTo(1), 99).count(), 1);
  EXPECT_EQ(NearestRank(UpTo(2), 50).count(), 1);
  EXPECT_EQ(NearestRank(UpTo(20), 50).count(), 10);
  EXPECT_EQ(NearestRank(UpTo(20), 99).count(), 20);
  EXPECT_EQ(NearestRank(UpTo(100), 99).count(), 99);
  EXPECT_EQ(NearestRank(UpTo(101), 99).count(), 100);
  EXPECT_EQ(NearestRank(UpTo(100), 100).count(), 100);
}

TEST(NearestRankTest, IsAMeasuredValueThatEnoughDoNotExceed) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Nanoseconds> values(1 + random() % 300);
    for (auto& value : values) value = Nanoseconds(random() % 1000);
    std::sort(values.begin(), values.end());
    for (const double percent : {1.0, 50.0, 90.0, 99.0, 100.0}) {
      const Nanoseconds rank = NearestRank(values, percent);
      const auto at_most = std::count_if(values.begin(), values.end(),
                                         [&](Nanoseconds value) { return value <= rank; });
      const auto below = std::count_if(values.begin(), values.end(),
                                       [&](Nanoseconds value) { return value < rank; });
      const double need = percent / 100 * static_cast<double>(values.size());
      EXPECT_GE(static_cast<double>(at_most), need - 1e-6);
      EXPECT_LT(static_cast<double>(below), need);
    }
  }
}

TEST(NearestRankTest, RefusesWhatHasNoRank) {
  EXPECT_THROW(NearestRank({}, 50), std::logic_error);
  EXPECT_THROW(NearestRank(UpTo(3), 0), std::logic_error);
  EXPECT_THROW(NearestRank(UpTo(3), 101), std::logic_error);
}

TEST(DescribeTest, NeedsNoOrder) {
  const auto described = Describe({Nanoseconds(5), Nanoseconds(1), Nanoseconds(3)});
  ASSERT_TRUE(described);
  EXPECT_EQ(described->count, 3U);
  EXPECT_EQ(described->min.count(), 1);
  EXPECT_EQ(described->p50.count(), 3);
  EXPECT_EQ(described->p99.count(), 5);
  EXPECT_EQ(described->max.count(), 5);
  EXPECT_EQ(described->sum.count(), 9);
  EXPECT_FALSE(Describe({}));
}

TEST(SummarizeTest, LeavesFailuresAndUnobservedStagesOut) {
  std::vector<Operation> operations;
  operations.push_back(MakeOperation(test::MakeReg(1000, 10)));
  auto disarmed = test::MakeReg(2000, 20);
  test::Disarm(disarmed, 6);
  operations.push_back(MakeOperation(disarmed));
  auto failed = test::MakeReg(3000, 1000);
  failed.ret = -12;
  operations.push_back(MakeOperation(failed));

  const Summary summary = Summarize(operations);
  EXPECT_EQ(summary.total->count, 2U);
  EXPECT_EQ(summary.total->max.count(), 200);
  EXPECT_FALSE(summary.stages[Index(RegStage::kLibrary)]);
  EXPECT_EQ(summary.stages[Index(RegStage::kSg)]->count, 1U);
  EXPECT_EQ(summary.stages[Index(RegStage::kPin)]->max.count(), 40);
  EXPECT_FALSE(Summarize({}).total);
}

}  // namespace
}  // namespace mrscope
