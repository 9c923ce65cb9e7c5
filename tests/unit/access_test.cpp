// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/access.h"

#include <gtest/gtest.h>

namespace mrscope {
namespace {

TEST(ParseAccessTest, TakesNamesInAnyOrder) {
  EXPECT_EQ(*ParseAccess("local_write"), 1U);
  EXPECT_EQ(*ParseAccess("remote_read,local_write"), 5U);
  EXPECT_EQ(*ParseAccess("remote_write, local_write"), 3U);
  EXPECT_EQ(*ParseAccess("relaxed_ordering"), 1U << 20);
  EXPECT_EQ(*ParseAccess("none"), 0U);
}

TEST(ParseAccessTest, NamesTheKnownOnesOnAMistake) {
  for (const char* text : {"", ",", "write", "none,local_write", "LOCAL_WRITE"}) {
    const auto access = ParseAccess(text);
    ASSERT_FALSE(access) << text;
    EXPECT_EQ(access.error().kind, ErrorKind::kUsage);
  }
  EXPECT_NE(ParseAccess("write").error().message.find("remote_atomic"), std::string::npos);
}

TEST(AccessNamesTest, KeepsBitsWithoutAName) {
  EXPECT_EQ(AccessNames(0).size(), 0U);
  EXPECT_EQ(AccessNames(7),
            (std::vector<std::string>{"local_write", "remote_write", "remote_read"}));
  EXPECT_EQ(AccessNames(1U << 25), std::vector<std::string>{"0x2000000"});
  EXPECT_EQ(FormatAccess(0), "none");
  EXPECT_EQ(FormatAccess(3), "local_write,remote_write");
}

TEST(AccessTest, EveryNameParsesToItsBit) {
  for (unsigned bit = 0; bit <= 20; ++bit) {
    const auto names = AccessNames(1U << bit);
    ASSERT_EQ(names.size(), 1U);
    if (names[0].starts_with("0x")) continue;
    EXPECT_EQ(*ParseAccess(names[0]), 1U << bit);
  }
}

TEST(NeedsLocalWriteTest, RemoteWritesNeedIt) {
  EXPECT_TRUE(NeedsLocalWrite(2));
  EXPECT_TRUE(NeedsLocalWrite(8));
  EXPECT_FALSE(NeedsLocalWrite(3));
  EXPECT_FALSE(NeedsLocalWrite(4));
  EXPECT_FALSE(NeedsLocalWrite(0));
}

}  // namespace
}  // namespace mrscope
