// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/units.h"

#include <gtest/gtest.h>

namespace mrscope {
namespace {

TEST(ParseSizeTest, TakesNumbersAndPowersOf1024) {
  EXPECT_EQ(ParseSize("1")->value, 1U);
  EXPECT_EQ(ParseSize("4096")->value, 4096U);
  EXPECT_EQ(ParseSize("100B")->value, 100U);
  EXPECT_EQ(ParseSize("4K")->value, 4096U);
  EXPECT_EQ(ParseSize("4k")->value, 4096U);
  EXPECT_EQ(ParseSize("64M")->value, 64U << 20);
  EXPECT_EQ(ParseSize("64MiB")->value, 64U << 20);
  EXPECT_EQ(ParseSize("64MB")->value, 64U << 20);
  EXPECT_EQ(ParseSize("1G")->value, 1U << 30);
  EXPECT_EQ(ParseSize("2T")->value, 2ULL << 40);
  EXPECT_EQ(ParseSize("16777215T")->value, 16777215ULL << 40);
}

TEST(ParseSizeTest, RefusesEverythingElseAsUsage) {
  for (const char* text : {"", "x", "M", "1X", "1.5M", "-1", "+1", " 1", "1 ", "4KK", "4Ki", "0",
                           "0K", "18446744073709551616", "16777216T", "0x1000"}) {
    const auto size = ParseSize(text);
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.error().kind, ErrorKind::kUsage) << text;
    EXPECT_FALSE(size.error().message.empty());
  }
}

TEST(FormatBytesTest, KeepsWholeNumbersWhole) {
  EXPECT_EQ(FormatBytes(Bytes{100}), "100 B");
  EXPECT_EQ(FormatBytes(Bytes{4096}), "4 KiB");
  EXPECT_EQ(FormatBytes(Bytes{1536}), "1.5 KiB");
  EXPECT_EQ(FormatBytes(Bytes{64U << 20}), "64 MiB");
  EXPECT_EQ(FormatBytes(Bytes{64ULL << 40}), "64 TiB");
}

TEST(FormatTimeTest, PicksTheUnit) {
  EXPECT_EQ(FormatTime(Nanoseconds(0)), "0 ns");
  EXPECT_EQ(FormatTime(Nanoseconds(999)), "999 ns");
  EXPECT_EQ(FormatTime(Nanoseconds(1500)), "1.50 us");
  EXPECT_EQ(FormatTime(Nanoseconds(2'500'000)), "2.50 ms");
  EXPECT_EQ(FormatTime(Nanoseconds(87'000'000'000)), "87.00 s");
}

TEST(FormatCountTest, KnowsTheNounsInUse) {
  EXPECT_EQ(FormatCount(1, "page"), "1 page");
  EXPECT_EQ(FormatCount(0, "page"), "0 pages");
  EXPECT_EQ(FormatCount(2, "pin batch"), "2 pin batches");
  EXPECT_EQ(FormatCount(3, "DMA entry"), "3 DMA entries");
}

TEST(RoundUpTest, RoundsToTheUnit) {
  EXPECT_EQ(RoundUp(Bytes{1}, Bytes{4096}).value, 4096U);
  EXPECT_EQ(RoundUp(Bytes{4096}, Bytes{4096}).value, 4096U);
  EXPECT_EQ(RoundUp(Bytes{4097}, Bytes{4096}).value, 8192U);
}

TEST(ResultTest, AskingForTheWrongSideIsAProgrammingError) {
  const Result<int> value(3);
  const Result<int> error(Error{ErrorKind::kFailed, 5, "no"});
  EXPECT_EQ(*value, 3);
  EXPECT_THROW((void)value.error(), std::logic_error);
  EXPECT_THROW((void)error.value(), std::logic_error);
  EXPECT_EQ(error.error().code, 5);
}

}  // namespace
}  // namespace mrscope
