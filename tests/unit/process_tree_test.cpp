// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/process_tree.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "mrscope.h"
#include "record_maker.h"

namespace mrscope {
namespace {

class ProcessTreeTest : public testing::Test {
 protected:
  void Mark(pid_t tid, const std::string& text) { Feed(MarkerEvent{tid, text}); }
  void Fork(pid_t parent, pid_t child) { Feed(ForkEvent{parent, child}); }
  void Exec(pid_t pid, const std::string& file) { Feed(ExecEvent{pid, file}); }
  void Exit(pid_t tid) { Feed(ExitEvent{tid}); }
  bool Reg(pid_t pid, pid_t tid) {
    KernelRecord record = test::MakeReg(1);
    record.tgid = pid;
    record.tid = tid;
    return Feed(record);
  }
  bool Dereg(pid_t pid, pid_t owner) {
    KernelRecord record = test::MakeDereg(1);
    record.tgid = record.tid = pid;
    record.owner_tgid = owner;
    if (owner == 0) record.flags &= ~MRSCOPE_F_OWNER;
    return Feed(record);
  }
  template <typename T>
  bool Feed(T what) {
    return tree_.Consume({.timestamp_ns = ++now_, .what = std::move(what)});
  }
  const TreeProcess* Find(pid_t pid) {
    processes_ = tree_.Processes();
    const auto found = std::find_if(processes_.begin(), processes_.end(),
                                    [&](const auto& process) { return process.pid == pid; });
    return found == processes_.end() ? nullptr : &*found;
  }

  ProcessTree tree_{"root marker"};
  std::uint64_t now_ = 0;
  std::vector<TreeProcess> processes_;
};

TEST_F(ProcessTreeTest, TheMarkerTellsTheRoot) {
  EXPECT_FALSE(Reg(10, 10));
  Mark(9, "something else");
  Mark(10, "root marker\n");
  Mark(11, "root marker\n");
  EXPECT_TRUE(Reg(10, 10));
  EXPECT_FALSE(Reg(11, 11));
}

TEST_F(ProcessTreeTest, FollowsForksOfForksAndThreads) {
  Mark(10, "root marker");
  Fork(10, 11);  // a process
  Fork(11, 12);  // a thread of it
  Fork(12, 13);  // a process started by the thread
  Fork(99, 100);
  EXPECT_TRUE(Reg(11, 11));
  EXPECT_TRUE(Reg(11, 12));
  EXPECT_TRUE(Reg(13, 13));
  EXPECT_FALSE(Reg(100, 100));
  EXPECT_FALSE(Reg(99, 99));
}

TEST_F(ProcessTreeTest, DeregistrationsBelongToTheOwner) {
  Mark(10, "root marker");
  Fork(10, 11);
  Exit(11);
  EXPECT_TRUE(Dereg(11, 11));   // while it exits
  EXPECT_TRUE(Dereg(500, 11));  // by a worker or at a hot removal
  EXPECT_FALSE(Dereg(500, 501));
  EXPECT_FALSE(Dereg(500, 0));
}

TEST_F(ProcessTreeTest, APidUsedAgainByOthersIsNotOurs) {
  Mark(10, "root marker");
  Fork(10, 11);
  Exec(11, "/bin/first");
  Exit(11);
  Fork(99, 11);
  EXPECT_FALSE(Reg(11, 11));
  ASSERT_NE(Find(11), nullptr);
  EXPECT_EQ(Find(11)->comm, "first");
  EXPECT_TRUE(Find(11)->exited);
}

TEST_F(ProcessTreeTest, ListsProcessesNotThreads) {
  Mark(10, "root marker");
  Exec(10, "/usr/bin/a_program_with_a_long_name");
  Fork(10, 11);
  Fork(10, 12);
  Reg(12, 12);
  Exit(12);
  EXPECT_EQ(tree_.Processes().size(), 2U);
  EXPECT_EQ(Find(10)->comm, "a_program_with_");
  EXPECT_EQ(Find(10)->parent, 0);
  EXPECT_FALSE(Find(10)->exited);
  EXPECT_EQ(Find(12)->parent, 10);
  EXPECT_EQ(Find(12)->comm, "prog");
  EXPECT_TRUE(Find(12)->exited);
  EXPECT_EQ(tree_.Alive(), (std::vector<pid_t>{10, 11}));
}

}  // namespace
}  // namespace mrscope
