// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/diagnosis.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "mrscope.h"
#include "record_maker.h"

namespace mrscope {
namespace {

Failure Fail(int error, int stage, const FailureFacts& facts = {}, std::uint32_t access = 7) {
  KernelRecord record = test::MakeReg(1000);
  record.ret = -error;
  record.failed_stage = stage;
  record.access = access;
  record.length = 1 << 20;
  return Diagnose(MakeOperation(record), facts);
}

bool Says(const Failure& failure, std::string_view text) {
  return failure.explanation.find(text) != std::string::npos;
}

TEST(DiagnoseTest, MemlockNamesNeededAndAllowed) {
  FailureFacts facts;
  facts.limits = PinLimits{.memlock = Bytes{65536}, .ipc_lock = false, .pinned = Bytes{4096}};
  const Failure failure = Fail(ENOMEM, MRSCOPE_REG_ACCOUNT, facts);
  EXPECT_EQ(failure.error, "ENOMEM");
  EXPECT_EQ(failure.stage, "account");
  EXPECT_TRUE(Says(failure, "64 KiB"));
  EXPECT_TRUE(Says(failure, "1 MiB"));
  EXPECT_TRUE(Says(failure, "4 KiB pinned already"));
  EXPECT_TRUE(Says(failure, "ulimit -l"));
}

TEST(DiagnoseTest, TheSameErrnoElsewhereIsAnotherCause) {
  EXPECT_TRUE(Says(Fail(ENOMEM, MRSCOPE_REG_ACCOUNT), "RLIMIT_MEMLOCK"));
  EXPECT_FALSE(Says(Fail(ENOMEM, MRSCOPE_REG_PIN), "RLIMIT_MEMLOCK"));
  EXPECT_TRUE(Says(Fail(ENOMEM, MRSCOPE_REG_PIN), "CMA"));
}

TEST(DiagnoseTest, ZeroLimit) {
  FailureFacts facts;
  facts.limits = PinLimits{.memlock = Bytes{0}, .ipc_lock = false, .pinned = {}};
  EXPECT_TRUE(Says(Fail(EPERM, MRSCOPE_REG_ACCOUNT, facts), "RLIMIT_MEMLOCK is 0"));
}

TEST(DiagnoseTest, FaultsTellUnmappedFromReadOnly) {
  FailureFacts facts;
  facts.mapped = false;
  EXPECT_TRUE(Says(Fail(EFAULT, MRSCOPE_REG_PIN, facts), "not mapped"));
  facts = {};
  facts.writable = false;
  EXPECT_TRUE(Says(Fail(EFAULT, MRSCOPE_REG_PIN, facts), "read-only"));
  EXPECT_TRUE(Says(Fail(EFAULT, MRSCOPE_REG_PIN), "/proc/PID/maps"));
}

TEST(DiagnoseTest, AccessFlagsAndSize) {
  const Failure access = Fail(EINVAL, MRSCOPE_REG_UVERBS, {}, 2);
  EXPECT_TRUE(Says(access, "needs local_write"));
  FailureFacts facts;
  facts.max_mr_size = 4096;
  EXPECT_TRUE(Says(Fail(EINVAL, MRSCOPE_REG_PREPARE, facts), "at most 4 KiB"));
}

TEST(DiagnoseTest, EveryErrnoHasASentence) {
  for (int error = 1; error < 134; ++error) {
    for (const int stage : {-1, 0, 1, 4, 5, 9}) {
      const Failure failure = Fail(error, stage);
      EXPECT_FALSE(failure.explanation.empty());
      EXPECT_EQ(failure.stage.has_value(), stage >= 0);
    }
  }
  EXPECT_THROW(Diagnose(MakeOperation(test::MakeReg(1)), {}), std::logic_error);
}

}  // namespace
}  // namespace mrscope
