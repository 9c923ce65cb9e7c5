// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/host_status.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "mrscope/environment.h"
#include "temp_dir.h"

namespace mrscope {
namespace {

void WriteWholeHost(const test::TempDir& root) {
  root.Write("proc/cpuinfo", "model name\t: Test CPU\nflags\t\t: fpu hypervisor\n");
  root.Write("proc/meminfo", "MemTotal:  1024 kB\n");
  root.Write("proc/cmdline", "quiet intel_iommu=on iommu.strict=1 ro\n");
  root.Write("proc/sys/kernel/ftrace_enabled", "1\n");
  root.Write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  root.Write("sys/kernel/mm/transparent_hugepage/defrag", "always defer [never]\n");
  root.Write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "8\n");
  root.Write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "3\n");
  root.Write("sys/kernel/iommu_groups/0/type", "DMA\n");
  root.Write("sys/kernel/tracing/instances/x", "");
  root.Write("sys/kernel/debug/kprobes/enabled", "1\n");
  root.Write("sys/class/infiniband_verbs/abi_version", "6\n");
  root.Write("sys/module/mrscope/version", "0.1\n");
  root.Write("sys/kernel/debug/mrscope/status",
             "mrscope 0.1\nenabled 1\nclock mono_fast\n"
             "boundary pin armed pin_user_pages_fast 3 0\n"
             "boundary slow unarmed - 0 0 only in deep mode\n"
             "boundary dma unarmed g 0 0 no device needs it\n"
             "boundary uverbs unarmed f 0 0 no such symbol: not every kernel has it\n");
  root.Write("sys/kernel/debug/mrscope/selftest", "pass\n");
}

HostStatus Collect(const test::TempDir& root) {
  return CollectHostStatus({.root = root.path(), .look_for_devices = false});
}

const Check& Find(const HostStatus& status, std::string_view name) {
  const auto found = std::find_if(status.checks.begin(), status.checks.end(),
                                  [&](const Check& check) { return check.name == name; });
  if (found == status.checks.end()) throw std::out_of_range(std::string(name));
  return *found;
}

TEST(EnvironmentTest, ReadsTheHost) {
  const test::TempDir root;
  WriteWholeHost(root);
  const Environment environment = CollectEnvironment(root.path());
  EXPECT_EQ(environment.cpu_model, "Test CPU");
  EXPECT_EQ(environment.hypervisor, true);
  EXPECT_EQ(environment.memory, Bytes{1U << 20});
  EXPECT_EQ(environment.thp, "madvise");
  EXPECT_EQ(environment.thp_defrag, "never");
  EXPECT_EQ(environment.huge_2m->total, 8U);
  EXPECT_EQ(environment.huge_2m->free, 3U);
  EXPECT_EQ(environment.iommu, "strict");
  EXPECT_EQ(environment.iommu_cmdline, "intel_iommu=on iommu.strict=1");
  EXPECT_EQ(environment.module_version, "0.1");
  EXPECT_EQ(environment.module_clock, "mono_fast");
  EXPECT_EQ(environment.mrscope, Version());
  EXPECT_NE(environment.libibverbs, "");
}

TEST(EnvironmentTest, UnknownIsNotZero) {
  const test::TempDir root;
  const Environment environment = CollectEnvironment(root.path());
  EXPECT_FALSE(environment.cpu_model);
  EXPECT_FALSE(environment.hypervisor);
  EXPECT_FALSE(environment.memory);
  EXPECT_FALSE(environment.huge_2m);
  EXPECT_FALSE(environment.numa_nodes);
  EXPECT_EQ(environment.thp, "unknown");
  EXPECT_EQ(environment.iommu, "off");
  EXPECT_FALSE(environment.module_version);
}

TEST(EnvironmentTest, NamesTheIommuMode) {
  const test::TempDir root;
  root.Write("sys/kernel/iommu_groups/0/type", "DMA-FQ\n");
  EXPECT_EQ(CollectEnvironment(root.path()).iommu, "lazy");
  root.Write("sys/kernel/iommu_groups/1/type", "identity\n");
  EXPECT_EQ(CollectEnvironment(root.path()).iommu, "mixed");
  root.Write("sys/kernel/iommu_groups/0/type", "identity\n");
  EXPECT_EQ(CollectEnvironment(root.path()).iommu, "passthrough");
}

TEST(HostStatusTest, SaysWhatLockdownCloses) {
  const test::TempDir root;
  WriteWholeHost(root);
  root.Write("sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
  EXPECT_EQ(Find(Collect(root), "lockdown").result, CheckResult::kOk);
  root.Write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
  EXPECT_EQ(Find(Collect(root), "lockdown").result, CheckResult::kReduced);
  root.Write("sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
  EXPECT_EQ(Find(Collect(root), "lockdown").result, CheckResult::kMissing);
}

TEST(HostStatusTest, AnInstalledModuleIsLoadedByItsName) {
  const test::TempDir root;
  EXPECT_EQ(LoadCommand(root.path()), "insmod mrscope.ko");
  utsname names{};
  ASSERT_EQ(uname(&names), 0);
  root.Write("lib/modules/" + std::string(names.release) + "/modules.dep",
             "updates/dkms/mrscope.ko.xz: kernel/drivers/infiniband/core/ib_core.ko.xz\n");
  EXPECT_EQ(LoadCommand(root.path()), "modprobe mrscope");
  const HostStatus status = Collect(root);
  EXPECT_TRUE(Find(status, "module").remedy.starts_with("modprobe mrscope"));
}

TEST(HostStatusTest, SaysWhyTheModuleWasRefused) {
  const test::TempDir root;
  root.Write("dev/kmsg", "5,800,3,-;Loading of unsigned module is rejected\n");
  const HostStatus status = Collect(root);
  const Check& module = Find(status, "module");
  EXPECT_NE(module.detail.find("the kernel refused it"), std::string::npos);
  EXPECT_NE(module.remedy.find("sign"), std::string::npos);
}

TEST(HostStatusTest, AWholeHostIsObservable) {
  const test::TempDir root;
  WriteWholeHost(root);
  const HostStatus status = Collect(root);
  EXPECT_EQ(Find(status, "boundary pin").result, CheckResult::kOk);
  EXPECT_EQ(Find(status, "boundary slow").result, CheckResult::kReduced);
  EXPECT_EQ(Find(status, "boundary dma").result, CheckResult::kOk);
  EXPECT_EQ(Find(status, "boundary uverbs").result, CheckResult::kOk);
  EXPECT_EQ(Find(status, "selftest").detail, "pass");
  EXPECT_EQ(status.observable(), geteuid() == 0);
}

TEST(HostStatusTest, EverythingMissingHasARemedy) {
  const test::TempDir root;
  const HostStatus status = Collect(root);
  EXPECT_FALSE(status.observable());
  for (const char* name : {"tracefs", "debugfs", "ib_uverbs", "module"}) {
    EXPECT_EQ(Find(status, name).result, CheckResult::kMissing) << name;
  }
  for (const Check& check : status.checks) {
    EXPECT_EQ(check.result == CheckResult::kOk, check.remedy.empty()) << check.name;
    EXPECT_EQ(check.result == CheckResult::kOk, check.breaks.empty()) << check.name;
  }
}

TEST(HostStatusTest, AFilterIsNoticed) {
  const test::TempDir root;
  WriteWholeHost(root);
  EXPECT_EQ(Find(Collect(root), "filters").result, CheckResult::kOk);
  root.Write("sys/kernel/debug/mrscope/status",
             "mrscope 0.1\nfilter_tgid 7\nfilter_min_ns 0\nfilter_device rxe9\n");
  const HostStatus status = Collect(root);
  const Check& check = Find(status, "filters");
  EXPECT_EQ(check.result, CheckResult::kReduced);
  EXPECT_EQ(check.detail, "filter_tgid 7, filter_device rxe9");
  EXPECT_EQ(check.remedy,
            "echo 0 > /sys/kernel/debug/mrscope/filter_tgid; "
            "echo '' > /sys/kernel/debug/mrscope/filter_device");
}

TEST(HostStatusTest, SilentSwitchesAreNoticed) {
  const test::TempDir root;
  WriteWholeHost(root);
  root.Write("sys/kernel/debug/kprobes/enabled", "0\n");
  root.Write("proc/sys/kernel/ftrace_enabled", "0\n");
  root.Write("sys/kernel/debug/mrscope/selftest", "fail: pin did not fire\n");
  root.Write("sys/kernel/debug/mrscope/status",
             "mrscope 0.1\nenabled 0\nboundary pin unarmed - 0 0 disarmed by the user\n");
  const HostStatus status = Collect(root);
  EXPECT_FALSE(status.observable());
  for (const char* name : {"kprobes", "ftrace", "selftest", "enabled", "boundary pin"}) {
    EXPECT_EQ(Find(status, name).result, CheckResult::kMissing) << name;
  }
  EXPECT_EQ(Find(status, "boundary pin").remedy, "echo > /sys/kernel/debug/mrscope/disarm");
}

}  // namespace
}  // namespace mrscope
