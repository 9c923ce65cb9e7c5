// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/join.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "mrscope.h"
#include "record_maker.h"

namespace mrscope {
namespace {

JoinResult JoinOne(const UserCall& call, const std::vector<KernelRecord>& records) {
  return Join(std::span(&call, 1), records).front();
}

TEST(JoinTest, FindsItsRecordAmongOthers) {
  const KernelRecord mine = test::MakeReg(1000);
  KernelRecord earlier = test::MakeReg(100, 10);
  KernelRecord later = test::MakeReg(5000);
  KernelRecord other_thread = mine;
  other_thread.vtid = 101;
  KernelRecord dereg = test::MakeDereg(1100, 10);
  KernelRecord other_addr = mine;
  other_addr.addr += 4096;
  KernelRecord other_length = mine;
  other_length.length += 1;
  const std::vector<KernelRecord> records = {earlier, later,      other_thread, dereg,
                                             mine,    other_addr, other_length};
  const JoinResult result = JoinOne(test::CallAround(mine), records);
  EXPECT_EQ(result.state, JoinState::kExact);
  EXPECT_EQ(result.record, 4U);
}

TEST(JoinTest, ContainmentIsInclusive) {
  const KernelRecord record = test::MakeReg(1000);
  EXPECT_EQ(JoinOne(test::CallAround(record, 0, 0), {record}).state, JoinState::kExact);
  UserCall call = test::CallAround(record, 0, 0);
  call.start += Nanoseconds(1);
  EXPECT_EQ(JoinOne(call, {record}).state, JoinState::kNoRecord);
  call = test::CallAround(record, 0, 0);
  call.end -= Nanoseconds(1);
  EXPECT_EQ(JoinOne(call, {record}).state, JoinState::kNoRecord);
}

TEST(JoinTest, WithoutRecordsThereIsNone) {
  EXPECT_EQ(JoinOne(test::CallAround(test::MakeReg(1000)), {}).state, JoinState::kNoRecord);
  EXPECT_TRUE(Join({}, std::vector{test::MakeReg(1000)}).empty());
}

TEST(JoinTest, TwoThatFitAreAmbiguousAndNotJoined) {
  const KernelRecord first = test::MakeReg(1000, 10);
  const KernelRecord second = test::MakeReg(2000, 10);
  UserCall call = test::CallAround(first);
  call.end = Nanoseconds(9000);
  const JoinResult result = JoinOne(call, {first, second});
  EXPECT_EQ(result.state, JoinState::kAmbiguous);
  EXPECT_FALSE(result.record);

  const auto operations = JoinOperations(std::span(&call, 1), std::vector{first, second});
  EXPECT_EQ(operations.front().join, JoinState::kAmbiguous);
  EXPECT_EQ(operations.front().stages.Get(0), operations.front().total);
}

TEST(JoinTest, AnUnknownAddressIsJoinedByTimeAlone) {
  KernelRecord record = test::MakeReg(1000);
  record.flags &= ~MRSCOPE_F_ADDR;
  record.addr = record.length = 0;
  UserCall call = test::CallAround(record);
  call.addr = 0x1000;
  call.length = 4096;
  EXPECT_EQ(JoinOne(call, {record}).state, JoinState::kByTime);
  EXPECT_EQ(JoinOne(call, {record, record}).state, JoinState::kAmbiguous);

  const auto operations = JoinOperations(std::span(&call, 1), std::vector{record});
  EXPECT_EQ(operations.front().addr, 0x1000U);
  EXPECT_EQ(operations.front().length, 4096U);
}

TEST(JoinTest, AKnownAddressWinsOverAnUnknownOne) {
  const KernelRecord exact = test::MakeReg(1000);
  KernelRecord blind = test::MakeReg(1100, 10);
  blind.flags &= ~MRSCOPE_F_ADDR;
  const JoinResult result = JoinOne(test::CallAround(exact), {blind, exact});
  EXPECT_EQ(result.state, JoinState::kExact);
  EXPECT_EQ(result.record, 1U);
}

TEST(JoinTest, TheKeyIsACheckOnly) {
  KernelRecord record = test::MakeReg(1000);
  UserCall call = test::CallAround(record);
  call.lkey = record.lkey + (1U << 8);
  EXPECT_EQ(JoinOne(call, {record}).state, JoinState::kKeyMismatch);
  EXPECT_FALSE(JoinOne(call, {record}).record);

  // Without whole keys the record has the index only.
  call.lkey = record.lkey | 0x77;
  EXPECT_EQ(JoinOne(call, {record}).state, JoinState::kExact);
  record.flags |= MRSCOPE_F_KEYS;
  EXPECT_EQ(JoinOne(call, {record}).state, JoinState::kKeyMismatch);
  record.lkey = *call.lkey;
  EXPECT_EQ(JoinOne(call, {record}).state, JoinState::kExact);
}

TEST(JoinTest, AFailureHasNoKeyAndIsJoined) {
  KernelRecord record = test::MakeReg(1000);
  record.ret = -ENOMEM;
  record.failed_stage = MRSCOPE_REG_ACCOUNT;
  record.flags &= ~MRSCOPE_F_LKEY;
  const UserCall call = test::CallAround(record);
  EXPECT_FALSE(call.lkey);
  const auto operations = JoinOperations(std::span(&call, 1), std::vector{record});
  EXPECT_EQ(operations.front().join, JoinState::kExact);
  EXPECT_EQ(operations.front().error, ENOMEM);
  EXPECT_EQ(operations.front().failed_stage, Index(RegStage::kAccount));
}

TEST(JoinTest, WhatNoVerbsCallAskedForIsLeftAlone) {
  const KernelRecord mine = test::MakeReg(1000);
  const UserCall call = test::CallAround(mine);
  KernelRecord ring = mine;
  ring.purpose = MRSCOPE_PURPOSE_DRIVER;
  EXPECT_EQ(JoinOne(call, {ring}).state, JoinState::kNoRecord);
  KernelRecord nested = mine;
  nested.flags |= MRSCOPE_F_NESTED;
  EXPECT_EQ(JoinOne(call, {nested, mine}).record, 1U);
  KernelRecord kernel = mine;
  kernel.entry = MRSCOPE_ENTRY_KERNEL;
  EXPECT_EQ(JoinOne(call, {kernel}).state, JoinState::kNoRecord);

  KernelRecord cleanup = test::MakeDereg(1000);
  const UserCall dereg = test::CallAround(cleanup);
  EXPECT_EQ(JoinOne(dereg, {cleanup}).state, JoinState::kExact);
  cleanup.entry = MRSCOPE_ENTRY_CLEANUP;
  EXPECT_EQ(JoinOne(dereg, {cleanup}).state, JoinState::kNoRecord);
}

TEST(JoinTest, DisarmedBoundariesDoNotKeepItFromJoining) {
  for (unsigned stage = 0; stage < MRSCOPE_REG_STAGES; ++stage) {
    KernelRecord record = test::MakeReg(1000);
    const UserCall call = test::CallAround(record);
    test::Disarm(record, stage);
    const auto operations = JoinOperations(std::span(&call, 1), std::vector{record});
    EXPECT_EQ(operations.front().join, JoinState::kExact) << stage;
    EXPECT_EQ(operations.front().stages.Sum(), operations.front().total) << stage;
    EXPECT_FALSE(operations.front().stages.Get(stage + 1)) << stage;
  }
}

// Eight threads that register the same address range again and again.
TEST(JoinTest, ManyThreadsAllFindTheirOwn) {
  std::mt19937_64 random(11);
  std::vector<KernelRecord> records;
  std::vector<UserCall> calls;
  for (int thread = 0; thread < 8; ++thread) {
    std::uint64_t now = 1000 + random() % 500;
    for (int i = 0; i < 1000; ++i) {
      KernelRecord record = i % 2 == 0 ? test::MakeReg(now, 1 + random() % 100)
                                       : test::MakeDereg(now, 1 + random() % 100);
      record.vtid = 100 + thread;
      record.seq = records.size();
      record.lkey = static_cast<std::uint32_t>(records.size()) << 8;
      records.push_back(record);
      calls.push_back(test::CallAround(record, 3, 3));
      now = record.end_ns() + 10 + random() % 100;
    }
  }
  std::vector<std::size_t> order(calls.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  std::vector<KernelRecord> shuffled;
  shuffled.reserve(records.size());
  for (const std::size_t i : order) shuffled.push_back(records[i]);
  const auto results = Join(calls, shuffled);
  for (std::size_t i = 0; i < results.size(); ++i) {
    ASSERT_EQ(results[i].state, JoinState::kExact);
    ASSERT_EQ(shuffled[*results[i].record].seq, i);
  }
}

}  // namespace
}  // namespace mrscope
