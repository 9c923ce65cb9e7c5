// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/module.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "temp_dir.h"

namespace mrscope {
namespace {

constexpr const char* kStatus = R"(mrscope 0.1
enabled 1
deep 0
keys 0
clock cycles scaled to CLOCK_MONOTONIC
records 51
lost 2
contexts 1 1032
outside_umems 0
probe_cost entry 248 pair 927 record 1644
device rxe0 rdma_rxe
boundary ioctl armed ib_uverbs_ioctl 144 3
boundary driver armed rxe_reg_user_mr
boundary dma unarmed - 0 0 no device maps through the DMA API
boundary sg unarmed
a_new_keyword 1 2 3

)";

TEST(ParseModuleStatusTest, ReadsEveryKeyword) {
  const ModuleStatus status = ParseModuleStatus(kStatus);
  EXPECT_EQ(status.version, "0.1");
  EXPECT_EQ(status.enabled, true);
  EXPECT_EQ(status.deep, false);
  EXPECT_EQ(status.keys, false);
  EXPECT_EQ(status.clock, "cycles scaled to CLOCK_MONOTONIC");
  EXPECT_EQ(status.records, 51U);
  EXPECT_EQ(status.lost, 2U);
  EXPECT_EQ(status.in_flight, 1U);
  EXPECT_EQ(status.contexts, 1032U);
  EXPECT_EQ(status.cost_entry, Nanoseconds(248));
  EXPECT_EQ(status.cost_pair, Nanoseconds(927));
  EXPECT_EQ(status.cost_record, Nanoseconds(1644));
  ASSERT_EQ(status.devices.size(), 1U);
  EXPECT_EQ(status.devices[0].driver, "rdma_rxe");
  ASSERT_EQ(status.boundaries.size(), 4U);
  EXPECT_TRUE(status.boundaries[0].armed);
  EXPECT_EQ(status.boundaries[0].symbol, "ib_uverbs_ioctl");
  EXPECT_EQ(status.boundaries[0].hits, 144U);
  EXPECT_EQ(status.boundaries[0].missed, 3U);
  EXPECT_FALSE(status.boundaries[1].hits);
  EXPECT_FALSE(status.boundaries[2].armed);
  EXPECT_EQ(status.boundaries[2].reason, "no device maps through the DMA API");
  EXPECT_EQ(status.boundaries[3].symbol, "-");
}

TEST(ParseModuleStatusTest, WhatIsNotSaidIsUnknown) {
  for (const char* text : {"", "\n\n", "enabled", "enabled maybe\nrecords x\ncontexts",
                           "boundary x", "probe_cost entry", "device"}) {
    const ModuleStatus status = ParseModuleStatus(text);
    EXPECT_FALSE(status.enabled) << text;
    EXPECT_FALSE(status.records) << text;
    EXPECT_FALSE(status.lost) << text;
    EXPECT_FALSE(status.in_flight) << text;
    EXPECT_FALSE(status.cost_entry) << text;
    EXPECT_TRUE(status.boundaries.empty()) << text;
    EXPECT_TRUE(status.devices.empty()) << text;
  }
}

TEST(ParseModuleStatusTest, NamesTheFiltersThatAreSet) {
  EXPECT_FALSE(ParseModuleStatus(kStatus).filter_device);
  EXPECT_TRUE(ParseModuleStatus(kStatus).SetFilters().empty());
  const ModuleStatus none = ParseModuleStatus("filter_tgid 0\nfilter_min_ns 0\nfilter_device -\n");
  EXPECT_EQ(none.filter_tgid, 0U);
  EXPECT_EQ(none.filter_min, Nanoseconds(0));
  EXPECT_EQ(none.filter_device, "");
  EXPECT_TRUE(none.SetFilters().empty());
  const auto set =
      ParseModuleStatus("filter_tgid 7\nfilter_min_ns 1000\nfilter_device rxe9\n").SetFilters();
  ASSERT_EQ(set.size(), 3U);
  EXPECT_EQ(set[0].setting, "filter_tgid 7");
  EXPECT_EQ(set[0].remedy, "echo 0 > /sys/kernel/debug/mrscope/filter_tgid");
  EXPECT_EQ(set[1].setting, "filter_min_ns 1000");
  EXPECT_EQ(set[2].remedy, "echo '' > /sys/kernel/debug/mrscope/filter_device");
}

TEST(ModuleTest, ReadsItsFilesAndSwitchesKeys) {
  const test::TempDir root;
  root.Write("sys/kernel/debug/mrscope/status", kStatus);
  root.Write("sys/kernel/debug/mrscope/selftest", "fail: boundary pin did not fire\nmore\n");
  root.Write("sys/module/mrscope/parameters/keys", "N\n");
  const Module module(root.path());
  EXPECT_TRUE(module.loaded());
  EXPECT_EQ(module.ReadStatus()->version, "0.1");
  EXPECT_EQ(*module.SelfTest(), "fail: boundary pin did not fire");
  EXPECT_TRUE(module.Hold());
  EXPECT_EQ(module.keys(), false);
  EXPECT_TRUE(module.SwitchKeys(true));
  EXPECT_EQ(module.keys(), true);
  EXPECT_TRUE(module.SwitchKeys(false));
  EXPECT_EQ(module.keys(), false);
}

TEST(ModuleTest, AFailedSelfTestNamesTheSwitchThatIsOff) {
  const test::TempDir root;
  const Module module(root.path());
  const auto remedy = [&] {
    const auto passed = module.CheckSelfTest();
    if (passed) return std::string("none needed");
    EXPECT_EQ(passed.error().kind, ErrorKind::kPrerequisite);
    return passed.error().message.substr(passed.error().message.rfind(": ") + 2);
  };
  EXPECT_EQ(remedy(), "run as root with this version's mrscope.ko loaded");
  root.Write("sys/kernel/debug/mrscope/selftest", "pass\n");
  EXPECT_EQ(remedy(), "none needed");
  root.Write("sys/kernel/debug/mrscope/selftest", "fail: a probe did not fire\n");
  EXPECT_EQ(remedy(), "mr_probe status says more, or reload mrscope.ko");
  root.Write("proc/sys/kernel/ftrace_enabled", "0\n");
  EXPECT_EQ(remedy(), "echo 1 > /proc/sys/kernel/ftrace_enabled");
  root.Write("sys/kernel/debug/kprobes/enabled", "0\n");
  EXPECT_EQ(remedy(), "echo 1 > /sys/kernel/debug/kprobes/enabled");
}

TEST(ModuleTest, SaysWhatIsMissing) {
  const test::TempDir root;
  const Module module(root.path());
  EXPECT_FALSE(module.loaded());
  EXPECT_FALSE(module.ReadStatus());
  ASSERT_FALSE(module.Hold());
  EXPECT_EQ(module.Hold().error().kind, ErrorKind::kPrerequisite);
  EXPECT_NE(module.Hold().error().message.find("debugfs"), std::string::npos);
  EXPECT_FALSE(module.keys());
  EXPECT_EQ(module.SwitchKeys(true).error().kind, ErrorKind::kPrerequisite);
}

}  // namespace
}  // namespace mrscope
