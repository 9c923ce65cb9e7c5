// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/load_refusal.h"

#include <gtest/gtest.h>

#include "temp_dir.h"

namespace mrscope {
namespace {

// As Linux 6.1 to 7.2 write them.
constexpr const char* kOtherIbCore =
    "4,700,1,-;mrscope: disagrees about version of symbol ib_register_client\n"
    "4,701,2,-;mrscope: Unknown symbol ib_register_client (err -22)\n";

TEST(LoadRefusalTest, NothingInALogOfOtherThings) {
  EXPECT_FALSE(FindLoadRefusal(""));
  EXPECT_FALSE(
      FindLoadRefusal("6,1,2,-;rdma_rxe: loaded\n6,2,3,-;other: Unknown symbol x (err -2)\n"
                      "5,3,4,-;mrscope: loading out-of-tree module taints kernel.\n"));
}

TEST(LoadRefusalTest, TheFirstOfTwoMessagesSaysMore) {
  const auto refusal = FindLoadRefusal(kOtherIbCore);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->why, "it was built for another ib_core than the loaded one");
  EXPECT_NE(refusal->remedy.find("OFED="), std::string::npos);
}

TEST(LoadRefusalTest, TheNewestCounts) {
  const auto refusal = FindLoadRefusal(std::string(kOtherIbCore) +
                                       "5,800,3,-;Lockdown: insmod: unsigned module loading is "
                                       "restricted; see man kernel_lockdown.7");
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->why.find("lockdown"), std::string::npos);
  EXPECT_NE(refusal->remedy.find("sign"), std::string::npos);
}

TEST(LoadRefusalTest, KnowsEachReason) {
  const auto why = [](const char* line) { return FindLoadRefusal(line)->why; };
  EXPECT_NE(why("3,1,1,-;mrscope: version magic '6.1.0 SMP' should be '6.12 SMP'").find("kernel"),
            std::string::npos);
  EXPECT_EQ(why("4,1,1,-;mrscope: Unknown symbol ib_register_client (err -2)"),
            "ib_core is not loaded");
  EXPECT_NE(why("4,1,1,-;mrscope: Unknown symbol register_kretprobe (err -2)").find("lacks"),
            std::string::npos);
  EXPECT_NE(why("5,1,1,-;Loading of unsigned module is rejected").find("Secure Boot"),
            std::string::npos);
  EXPECT_NE(why("5,1,1,-;Loading of module with unavailable key is rejected").find("key"),
            std::string::npos);
}

TEST(LoadRefusalTest, ReadsTheLog) {
  const test::TempDir root;
  EXPECT_EQ(ReadKernelLog(root.path()), "");
  root.Write("dev/kmsg", "6,1,1,-;one");
  EXPECT_EQ(ReadKernelLog(root.path()), "6,1,1,-;one\n");
}

}  // namespace
}  // namespace mrscope
