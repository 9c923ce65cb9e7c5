// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "bpf_account.h"

#include <gtest/gtest.h>

#include "mrscope.h"
#include "mrscope/operation.h"

namespace mrscope {
namespace {

constexpr std::uint32_t Bit(unsigned stage) { return 1U << stage; }

BpfFacts AllAttached() {
  BpfFacts facts;
  facts.attached.set();
  return facts;
}

// A registration of one page as rxe makes it: 100 ns in each stage.
mrs_bpf_operation Reg() {
  mrs_bpf_operation operation{};
  operation.op = MRSCOPE_OP_REG;
  operation.failed_stage = -1;
  operation.start_ns = 1000;
  operation.addr = 0x7000;
  operation.length = 4096;
  operation.pages = 1;
  operation.pin_batches = 1;
  operation.lkey = 0x1234;
  operation.rkey = 0x1234;
  operation.flags = MRSCOPE_F_ADDR | MRSCOPE_F_ACCESS | MRSCOPE_F_PIN | MRSCOPE_F_UMEM |
                    MRSCOPE_F_SG | MRSCOPE_F_DMA | MRSCOPE_F_LKEY;
  for (unsigned stage = MRSCOPE_REG_SYSCALL; stage <= MRSCOPE_REG_PUBLISH; ++stage) {
    if (stage == MRSCOPE_REG_ATTACH) continue;
    operation.ns[stage] = 100;
    operation.observed |= Bit(stage);
    operation.stage = stage;
  }
  return operation;
}

void Forget(mrs_bpf_operation& operation, unsigned stage) {
  operation.ns[stage] = 0;
  operation.observed &= ~Bit(stage);
}

TEST(BpfAccountTest, AWholeRegistration) {
  const KernelRecord record = RecordOf(Reg(), AllAttached());
  EXPECT_EQ(record.total_ns, 1000U);
  EXPECT_EQ(record.start_ns, 1000U);
  EXPECT_EQ(record.merged, 0U);
  EXPECT_FALSE(record.Has(MRSCOPE_F_INCOMPLETE));
  EXPECT_TRUE(record.Has(MRSCOPE_F_NO_COMMIT));
  // Neither a dmabuf nor an unwinding: known, and nothing.
  EXPECT_NE(record.observed & Bit(MRSCOPE_REG_ATTACH), 0U);
  EXPECT_NE(record.observed & Bit(MRSCOPE_REG_UNWIND), 0U);
  EXPECT_FALSE(MakeOperation(record).incomplete);
}

TEST(BpfAccountTest, TheVariantOfAKeyIsAskedFor) {
  EXPECT_EQ(RecordOf(Reg(), AllAttached()).lkey, 0x1200U);
  BpfFacts facts = AllAttached();
  facts.keys = true;
  const KernelRecord record = RecordOf(Reg(), facts);
  EXPECT_EQ(record.rkey, 0x1234U);
  EXPECT_TRUE(record.Has(MRSCOPE_F_KEYS));
}

TEST(BpfAccountTest, WhatWasNeverWrittenIsNotRead) {
  mrs_bpf_operation operation = Reg();
  operation.flags = 0;
  operation.owner_tgid = 7;
  const KernelRecord record = RecordOf(operation, AllAttached());
  EXPECT_EQ(record.addr, 0U);
  EXPECT_EQ(record.length, 0U);
  EXPECT_EQ(record.lkey, 0U);
  EXPECT_EQ(record.owner_tgid, 0);
}

TEST(BpfAccountTest, AStageWithoutItsBoundaryIsMerged) {
  mrs_bpf_operation operation = Reg();
  Forget(operation, MRSCOPE_REG_DMA);
  Forget(operation, MRSCOPE_REG_TABLE);
  BpfFacts facts = AllAttached();
  facts.attached.reset(MRS_BPF_DMA);
  const KernelRecord record = RecordOf(operation, facts);
  EXPECT_EQ(record.merged, Bit(MRSCOPE_REG_DMA) | Bit(MRSCOPE_REG_TABLE));
  EXPECT_FALSE(record.Has(MRSCOPE_F_INCOMPLETE));
  EXPECT_EQ(record.total_ns, 800U);
}

TEST(BpfAccountTest, AStageThatItsBoundaryMissedIsIncomplete) {
  mrs_bpf_operation operation = Reg();
  Forget(operation, MRSCOPE_REG_DMA);
  EXPECT_TRUE(RecordOf(operation, AllAttached()).Has(MRSCOPE_F_INCOMPLETE));
  operation = Reg();
  operation.pages = 3;
  EXPECT_TRUE(RecordOf(operation, AllAttached()).Has(MRSCOPE_F_INCOMPLETE));
}

TEST(BpfAccountTest, ADriverThatPinsItselfHasAccountInPrepare) {
  mrs_bpf_operation operation = Reg();
  Forget(operation, MRSCOPE_REG_ACCOUNT);
  operation.flags &= ~MRSCOPE_F_UMEM;
  const KernelRecord record = RecordOf(operation, AllAttached());
  EXPECT_FALSE(record.Has(MRSCOPE_F_INCOMPLETE));
  EXPECT_EQ(record.merged, Bit(MRSCOPE_REG_ACCOUNT));
  Forget(operation, MRSCOPE_REG_DMA);
  EXPECT_TRUE(RecordOf(operation, AllAttached()).Has(MRSCOPE_F_INCOMPLETE));
}

TEST(BpfAccountTest, OnDemandNeedsNoMemory) {
  mrs_bpf_operation operation = Reg();
  operation.access = 1U << 6;
  for (const unsigned stage :
       {MRSCOPE_REG_ACCOUNT, MRSCOPE_REG_PIN, MRSCOPE_REG_SG, MRSCOPE_REG_DMA}) {
    Forget(operation, stage);
  }
  operation.flags &= ~(MRSCOPE_F_UMEM | MRSCOPE_F_PIN);
  const KernelRecord record = RecordOf(operation, AllAttached());
  EXPECT_FALSE(record.Has(MRSCOPE_F_INCOMPLETE));
  EXPECT_NE(record.observed & Bit(MRSCOPE_REG_PIN), 0U);
  EXPECT_EQ(MakeOperation(record).stages.Get(Index(RegStage::kPin)), Nanoseconds(0));
}

TEST(BpfAccountTest, AFailureEndsWhereItWas) {
  mrs_bpf_operation operation = Reg();
  operation.ret = -14;
  for (unsigned stage = MRSCOPE_REG_SG; stage <= MRSCOPE_REG_PUBLISH; ++stage) {
    Forget(operation, stage);
  }
  operation.stage = MRSCOPE_REG_PIN;
  const KernelRecord record = RecordOf(operation, AllAttached());
  EXPECT_EQ(record.failed_stage, MRSCOPE_REG_PIN);
  // What comes later did not happen; how long the way back took is in the pin.
  EXPECT_NE(record.observed & Bit(MRSCOPE_REG_PUBLISH), 0U);
  EXPECT_EQ(record.merged, Bit(MRSCOPE_REG_UNWIND));
  EXPECT_FALSE(record.Has(MRSCOPE_F_INCOMPLETE));
}

TEST(BpfAccountTest, TheCostCountsEachTimeThatWasTaken) {
  BpfFacts facts = AllAttached();
  EXPECT_EQ(RecordOf(Reg(), facts).probe_cost_ns, 0U);
  EXPECT_EQ(MakeOperation(RecordOf(Reg(), facts)).probe_cost, std::nullopt);
  facts.cost = BpfCost{Nanoseconds(30), Nanoseconds(10), Nanoseconds(400)};
  mrs_bpf_operation operation = Reg();  // ten stages
  EXPECT_EQ(RecordOf(operation, facts).probe_cost_ns, 430U + 9 * 10);
  operation.pin_batches = 3;
  EXPECT_EQ(RecordOf(operation, facts).probe_cost_ns, 430U + 13 * 10);
}

mrs_bpf_operation Dereg() {
  mrs_bpf_operation operation{};
  operation.op = MRSCOPE_OP_DEREG;
  operation.entry = MRSCOPE_ENTRY_IOCTL;
  operation.failed_stage = -1;
  operation.flags = MRSCOPE_F_ADDR | MRSCOPE_F_LKEY;
  for (const unsigned stage : {MRSCOPE_DEREG_SYSCALL, MRSCOPE_DEREG_UVERBS,
                               MRSCOPE_DEREG_INVALIDATE, MRSCOPE_DEREG_UNPIN, MRSCOPE_DEREG_FREE}) {
    operation.ns[stage] = 50;
    operation.observed |= Bit(stage);
  }
  return operation;
}

TEST(BpfAccountTest, TheNoteOfADeregistrationCosts) {
  BpfFacts facts = AllAttached();
  facts.cost = BpfCost{Nanoseconds(30), Nanoseconds(10), Nanoseconds(400)};
  mrs_bpf_operation operation = Dereg();  // five stages
  EXPECT_EQ(RecordOf(operation, facts).probe_cost_ns, 430U + 5 * 10);
  operation.entry = MRSCOPE_ENTRY_UNKNOWN;
  EXPECT_EQ(RecordOf(operation, facts).probe_cost_ns, 430U + 4 * 10);
}

TEST(BpfAccountTest, ASoftwareDeviceUnmapsNothing) {
  const KernelRecord record = RecordOf(Dereg(), AllAttached());
  EXPECT_EQ(record.merged, 0U);
  EXPECT_NE(record.observed & Bit(MRSCOPE_DEREG_UNMAP), 0U);
  EXPECT_FALSE(record.Has(MRSCOPE_F_NO_COMMIT));
  EXPECT_EQ(record.total_ns, 250U);
}

TEST(BpfAccountTest, AnotherOneUnmapsAndUnpinsInOne) {
  mrs_bpf_operation operation = Dereg();
  Forget(operation, MRSCOPE_DEREG_UNPIN);
  operation.ns[MRSCOPE_DEREG_UNMAP] = 50;
  operation.observed |= Bit(MRSCOPE_DEREG_UNMAP);
  EXPECT_EQ(RecordOf(operation, AllAttached()).merged, Bit(MRSCOPE_DEREG_UNPIN));
}

TEST(BpfAccountTest, ADeregistrationThatNobodyNotedStartsAtTheDriver) {
  mrs_bpf_operation operation = Dereg();
  operation.entry = MRSCOPE_ENTRY_UNKNOWN;
  Forget(operation, MRSCOPE_DEREG_SYSCALL);
  const KernelRecord record = RecordOf(operation, AllAttached());
  EXPECT_EQ(record.start_ns, 50U);
  EXPECT_EQ(record.total_ns, 150U);
  EXPECT_EQ(record.merged & Bit(MRSCOPE_DEREG_UVERBS), Bit(MRSCOPE_DEREG_UVERBS));
}

}  // namespace
}  // namespace mrscope
