// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/operation.h"

#include <gtest/gtest.h>

#include <random>

#include "mrscope.h"
#include "record_maker.h"

namespace mrscope {
namespace {

using Groups = std::vector<std::vector<std::size_t>>;

TEST(StageTimesTest, KeepsTheThreeStatesApart) {
  StageTimes stages(RegStageNames());
  stages.Set(Index(RegStage::kPin), Nanoseconds(5));
  stages.Set(Index(RegStage::kAttach), Nanoseconds(0));
  stages.Merge(Index(RegStage::kSg), Index(RegStage::kPin));
  EXPECT_EQ(stages.Get(Index(RegStage::kPin)), Nanoseconds(5));
  EXPECT_EQ(stages.Get(Index(RegStage::kAttach)), Nanoseconds(0));
  EXPECT_EQ(stages.Get(Index(RegStage::kSg)), std::nullopt);
  EXPECT_EQ(stages.Carrier(Index(RegStage::kSg)), Index(RegStage::kPin));
  EXPECT_EQ(stages.Get(Index(RegStage::kDma)), std::nullopt);
  EXPECT_EQ(stages.Carrier(Index(RegStage::kDma)), std::nullopt);
  EXPECT_EQ(stages.MergedGroups(), (Groups{{Index(RegStage::kPin), Index(RegStage::kSg)}}));
  EXPECT_THROW(stages.Merge(1, 1), std::logic_error);
}

TEST(MakeOperationTest, KernelAloneHasNoUserStages) {
  const Operation operation = MakeOperation(test::MakeReg(1000));
  EXPECT_EQ(operation.total.count(), 1000);
  EXPECT_EQ(operation.stages.Get(Index(RegStage::kLibrary)), std::nullopt);
  EXPECT_EQ(operation.stages.Get(Index(RegStage::kReturn)), std::nullopt);
  EXPECT_EQ(operation.stages.Get(Index(RegStage::kAttach)), Nanoseconds(0));
  EXPECT_EQ(operation.stages.Sum(), operation.total);
  EXPECT_TRUE(operation.stages.MergedGroups().empty());
  EXPECT_EQ(operation.join, JoinState::kNone);
  EXPECT_FALSE(operation.incomplete);
  EXPECT_FALSE(operation.failed());
}

TEST(MakeOperationTest, UnknownIsNotZero) {
  KernelRecord record = test::MakeReg(1000);
  record.flags = 0;
  record.page_size = 0;
  const Operation operation = MakeOperation(record);
  EXPECT_FALSE(operation.addr);
  EXPECT_FALSE(operation.length);
  EXPECT_FALSE(operation.iova);
  EXPECT_FALSE(operation.pages);
  EXPECT_FALSE(operation.page_size);
  EXPECT_FALSE(operation.pin_batches);
  EXPECT_FALSE(operation.sg_entries);
  EXPECT_FALSE(operation.dma_entries);
  EXPECT_FALSE(operation.access);
  EXPECT_FALSE(operation.lkey);
  EXPECT_FALSE(operation.slow_calls);
  EXPECT_EQ(operation.faults_major, 0U);
}

TEST(MakeOperationTest, ASumThatIsOffIsIncomplete) {
  KernelRecord record = test::MakeReg(1000);
  record.total_ns += 1;
  EXPECT_TRUE(MakeOperation(record).incomplete);
  record.total_ns -= 1;
  record.flags |= MRSCOPE_F_INCOMPLETE;
  EXPECT_TRUE(MakeOperation(record).incomplete);
}

// Attach did not happen: it cannot contain the time of another stage.
TEST(MakeOperationTest, NothingMergesIntoAStageThatDidNotHappen) {
  KernelRecord record = test::MakeReg(1000);
  test::Disarm(record, MRSCOPE_REG_DMA);
  test::Disarm(record, MRSCOPE_REG_TABLE);
  const Operation operation = MakeOperation(record);
  EXPECT_EQ(operation.stages.Get(Index(RegStage::kAttach)), Nanoseconds(0));
  EXPECT_EQ(operation.stages.MergedGroups(),
            (Groups{{Index(RegStage::kSg), Index(RegStage::kDma), Index(RegStage::kTable)}}));
  EXPECT_EQ(operation.stages.Sum(), operation.total);
}

TEST(MakeOperationTest, MergesIntoTheNearestEarlierObservedStage) {
  KernelRecord record = test::MakeReg(1000);
  test::Disarm(record, MRSCOPE_REG_DMA);
  test::Disarm(record, MRSCOPE_REG_SG);
  const Operation operation = MakeOperation(record);
  EXPECT_EQ(operation.stages.Get(Index(RegStage::kPin)), Nanoseconds(300));
  EXPECT_EQ(operation.stages.MergedGroups(),
            (Groups{{Index(RegStage::kPin), Index(RegStage::kSg), Index(RegStage::kDma)}}));
  EXPECT_EQ(operation.stages.Sum(), operation.total);
  EXPECT_FALSE(operation.incomplete);
}

TEST(MakeOperationTest, FailureNamesErrnoAndStage) {
  KernelRecord record = test::MakeReg(1000);
  record.ret = -ENOMEM;
  record.failed_stage = MRSCOPE_REG_ACCOUNT;
  const Operation operation = MakeOperation(record);
  EXPECT_EQ(operation.error, ENOMEM);
  EXPECT_EQ(operation.failed_stage, Index(RegStage::kAccount));
  record.failed_stage = 99;
  EXPECT_FALSE(MakeOperation(record).failed_stage);
}

TEST(MakeOperationTest, DeregistrationNamesOwnerAndExecutor) {
  KernelRecord record = test::MakeDereg(1000);
  record.tid = record.tgid = 7;
  record.entry = MRSCOPE_ENTRY_CLEANUP;
  const Operation operation = MakeOperation(record);
  EXPECT_EQ(operation.task->pid, 7);
  EXPECT_EQ(operation.owner->pid, 100);
  EXPECT_EQ(operation.owner->comm, "prog");
  EXPECT_EQ(operation.entry, "cleanup");
  EXPECT_FALSE(operation.faults_minor);
  record.flags &= ~MRSCOPE_F_OWNER;
  EXPECT_FALSE(MakeOperation(record).owner);
}

TEST(MakeJoinedOperationTest, AddsLibraryAndReturn) {
  const KernelRecord record = test::MakeReg(1000);
  const Operation operation =
      MakeJoinedOperation(record, test::CallAround(record, 30, 50), JoinState::kExact);
  EXPECT_EQ(operation.total.count(), 1080);
  EXPECT_EQ(operation.kernel_total->count(), 1000);
  EXPECT_EQ(operation.stages.Get(Index(RegStage::kLibrary)), Nanoseconds(30));
  EXPECT_EQ(operation.stages.Get(Index(RegStage::kReturn)), Nanoseconds(50));
  EXPECT_EQ(operation.stages.Sum(), operation.total);
}

TEST(MakeJoinedOperationTest, UnobservedSyscallIsMergedWithLibrary) {
  KernelRecord record = test::MakeReg(1000);
  test::Disarm(record, MRSCOPE_REG_SYSCALL);
  const Operation operation =
      MakeJoinedOperation(record, test::CallAround(record, 130, 50), JoinState::kExact);
  EXPECT_EQ(operation.stages.Get(Index(RegStage::kLibrary)), Nanoseconds(130));
  EXPECT_EQ(operation.stages.Get(Index(RegStage::kSyscall)), std::nullopt);
  EXPECT_EQ(operation.stages.MergedGroups(),
            (Groups{{Index(RegStage::kLibrary), Index(RegStage::kSyscall)}}));
  EXPECT_EQ(operation.stages.Sum(), operation.total);
}

TEST(MakeJoinedOperationTest, WithoutTheCommitTheReturnIsMergedWithPublish) {
  KernelRecord record = test::MakeReg(1000);
  record.flags |= MRSCOPE_F_NO_COMMIT;
  Operation operation =
      MakeJoinedOperation(record, test::CallAround(record, 30, 50), JoinState::kExact);
  EXPECT_EQ(operation.stages.Get(Index(RegStage::kPublish)), Nanoseconds(150));
  EXPECT_EQ(operation.stages.Get(Index(RegStage::kReturn)), std::nullopt);
  EXPECT_EQ(operation.stages.MergedGroups(),
            (Groups{{Index(RegStage::kPublish), Index(RegStage::kReturn)}}));
  EXPECT_EQ(operation.stages.Sum(), operation.total);

  test::Disarm(record, MRSCOPE_REG_PUBLISH);
  operation = MakeJoinedOperation(record, test::CallAround(record, 30, 50), JoinState::kExact);
  EXPECT_EQ(
      operation.stages.MergedGroups(),
      (Groups{{Index(RegStage::kTable), Index(RegStage::kPublish), Index(RegStage::kReturn)}}));
  EXPECT_EQ(operation.stages.Sum(), operation.total);
}

TEST(MakeJoinedOperationTest, ARecordOutsideItsCallIsAProgrammingError) {
  const KernelRecord record = test::MakeReg(1000);
  UserCall call = test::CallAround(record);
  call.start = Nanoseconds(1001);
  EXPECT_THROW(MakeJoinedOperation(record, call, JoinState::kExact), std::logic_error);
}

TEST(MakeUserOperationTest, LibraryHoldsEverything) {
  UserCall call = test::CallAround(test::MakeDereg(1000));
  const Operation operation = MakeUserOperation(call, JoinState::kNoRecord);
  EXPECT_EQ(operation.stages.Get(0), operation.total);
  EXPECT_EQ(operation.stages.Sum(), operation.total);
  EXPECT_EQ(operation.stages.MergedGroups().size(), 1U);
  EXPECT_EQ(operation.stages.MergedGroups()[0].size(), kDeregStages);
  EXPECT_FALSE(operation.kernel_total);
  EXPECT_FALSE(operation.pages);
}

// Whatever boundaries were armed: the stages add up to the total, a merged
// stage has no time of its own, and its carrier has one.
TEST(OperationPropertyTest, StagesAlwaysAddUp) {
  std::mt19937_64 random(20240229);
  for (int round = 0; round < 20000; ++round) {
    const KernelRecord record = test::RandomRecord(random);
    const UserCall call = test::CallAround(record, 1 + random() % 1000, random() % 1000);
    for (const Operation& operation :
         {MakeOperation(record), MakeJoinedOperation(record, call, JoinState::kExact),
          MakeUserOperation(call, JoinState::kAmbiguous)}) {
      ASSERT_EQ(operation.stages.Sum(), operation.total);
      ASSERT_FALSE(operation.incomplete);
      for (const auto& group : operation.stages.MergedGroups()) {
        ASSERT_TRUE(operation.stages.Get(group.front()));
        for (std::size_t i = 1; i < group.size(); ++i) {
          ASSERT_FALSE(operation.stages.Get(group[i]));
          ASSERT_GT(group[i], group[i - 1]);
        }
      }
    }
  }
}

TEST(OperationPropertyTest, DisarmingOneAfterTheOtherKeepsTheSum) {
  for (unsigned first = 0; first < MRSCOPE_REG_STAGES; ++first) {
    KernelRecord record = test::MakeReg(10000);
    const UserCall call = test::CallAround(record);
    for (unsigned i = 0; i + 1 < MRSCOPE_REG_STAGES; ++i) {
      test::Disarm(record, (first + i) % MRSCOPE_REG_STAGES);
      const Operation operation = MakeJoinedOperation(record, call, JoinState::kExact);
      EXPECT_EQ(operation.stages.Sum(), operation.total);
      EXPECT_EQ(operation.total, call.end - call.start);
    }
  }
}

}  // namespace
}  // namespace mrscope
