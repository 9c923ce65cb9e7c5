// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/decode.h"

#include <gtest/gtest.h>

#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "mrscope.h"

namespace mrscope {
namespace {

// Builds the text of a format file and an event of that layout, field by field,
// in whatever order: decoders go by name only.
class EventBuilder {
 public:
  EventBuilder(std::string name, std::uint16_t id) : name_(std::move(name)) {
    Number("unsigned short", "common_type", 2, id);
    Number("unsigned char", "common_flags", 1, 0);
    Number("unsigned char", "common_preempt_count", 1, 0);
    Number("int", "common_pid", 4, 4321);
    format_ << '\n';
  }

  EventBuilder& Number(const std::string& type, const std::string& name, std::size_t size,
                       std::uint64_t value) {
    Align(size);
    Declare(type + " " + name, size, !type.starts_with("u"));
    Append(&value, size);
    return *this;
  }
  EventBuilder& U64(const std::string& name, std::uint64_t value) {
    return Number("u64", name, 8, value);
  }
  EventBuilder& U32(const std::string& name, std::uint64_t value) {
    return Number("u32", name, 4, value);
  }
  EventBuilder& S32(const std::string& name, std::int64_t value) {
    return Number("s32", name, 4, static_cast<std::uint64_t>(value));
  }
  EventBuilder& Text(const std::string& name, std::size_t size, std::string text) {
    Declare("char " + name + "[" + std::to_string(size) + "]", size, false);
    text.resize(size, '\0');
    Append(text.data(), size);
    return *this;
  }
  // The text itself lies behind the fields.
  EventBuilder& DataLoc(const std::string& name, const std::string& text) {
    Align(4);
    Declare("__data_loc char[] " + name, 4, false);
    pending_.emplace_back(data_.size(), text);
    Append("\0\0\0\0", 4);
    return *this;
  }

  std::string format() const {
    return "name: " + name_ + "\nID: 77\nformat:\n" + format_.str() +
           "\nprint fmt: \"%llu\", this_cannot_be_parsed(REC->nothing)\n";
  }
  std::vector<std::byte> data() const {
    std::vector<std::byte> data = data_;
    for (const auto& [at, text] : pending_) {
      const auto location = static_cast<std::uint32_t>(data.size() | ((text.size() + 1) << 16));
      std::memcpy(data.data() + at, &location, sizeof(location));
      const auto* bytes = reinterpret_cast<const std::byte*>(text.c_str());
      data.insert(data.end(), bytes, bytes + text.size() + 1);
    }
    return data;
  }

 private:
  void Align(std::size_t size) {
    while (data_.size() % size != 0) data_.push_back(std::byte{0});
  }
  void Declare(const std::string& what, std::size_t size, bool is_signed) {
    format_ << "\tfield:" << what << ";\toffset:" << data_.size() << ";\tsize:" << size
            << ";\tsigned:" << is_signed << ";\n";
  }
  void Append(const void* from, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(from);
    data_.insert(data_.end(), bytes, bytes + size);
  }

  std::string name_;
  std::ostringstream format_;
  std::vector<std::byte> data_;
  std::vector<std::pair<std::size_t, std::string>> pending_;
};

constexpr const char* kRegStage[] = {MRSCOPE_REG_STAGE_NAMES};
constexpr const char* kDeregStage[] = {MRSCOPE_DEREG_STAGE_NAMES};

// Another order than the module's, numbers of other widths, on purpose.
EventBuilder RegEvent(const std::string& left_out = "") {
  EventBuilder event("mr_reg", 77);
  event.Text("device", 64, "rxe0").Text("comm", 16, "a_program_of_15");
  std::uint64_t value = 1;
  for (const char* stage : kRegStage) event.U64(std::string(stage) + "_ns", 1000 * value++);
  for (const char* name :
       {"rkey", "lkey", "migrations", "slow_calls", "nivcsw", "nvcsw", "faults_major",
        "faults_minor", "dma_entries", "sg_entries", "pin_batches", "merged", "observed", "access",
        "flags", "purpose", "entry"}) {
    if (name != left_out) event.U32(name, value);
    ++value;
  }
  event.U32("op", MRSCOPE_OP_REREG);
  event.S32("failed_stage", -1).S32("ret", -12);
  event.S32("tid", 11).S32("tgid", 12).S32("vtid", 13).S32("vtgid", 14);
  event.U64("seq", 0xfedcba9876543210).U64("start_ns", 5).U64("total_ns", 6);
  event.U64("addr", 0x7f0000000000).U64("length", 7).U64("iova", 8);
  event.U64("pages", 9).U32("page_size", 4096).U64("slow_ns", 10).U64("probe_cost_ns", 11);
  event.U64("a_field_of_the_future", 99);
  return event;
}

TEST(DecodeTest, FindsFieldsByNameWhateverTheLayout) {
  const EventBuilder event = RegEvent();
  EventDecoder decoder;
  const auto added = decoder.AddFormat("mrscope", event.format());
  ASSERT_TRUE(added) << added.error().message;
  const auto decoded = decoder.Decode(123, event.data());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->timestamp_ns, 123U);
  const auto& record = std::get<KernelRecord>(decoded->what);
  EXPECT_EQ(record.op, Op::kRereg);
  EXPECT_EQ(record.seq, 0xfedcba9876543210U);
  EXPECT_EQ(record.start_ns, 5U);
  EXPECT_EQ(record.total_ns, 6U);
  EXPECT_EQ(record.addr, 0x7f0000000000U);
  EXPECT_EQ(record.length, 7U);
  EXPECT_EQ(record.iova, 8U);
  EXPECT_EQ(record.ret, -12);
  EXPECT_EQ(record.failed_stage, -1);
  for (std::size_t i = 0; i < MRSCOPE_REG_STAGES; ++i) {
    EXPECT_EQ(record.stage_ns.at(i), 1000 * (i + 1));
  }
  EXPECT_EQ(record.rkey, 13U);
  EXPECT_EQ(record.lkey, 14U);
  EXPECT_EQ(record.migrations, 15U);
  EXPECT_EQ(record.slow_calls, 16U);
  EXPECT_EQ(record.nivcsw, 17U);
  EXPECT_EQ(record.nvcsw, 18U);
  EXPECT_EQ(record.faults_major, 19U);
  EXPECT_EQ(record.faults_minor, 20U);
  EXPECT_EQ(record.dma_entries, 21U);
  EXPECT_EQ(record.sg_entries, 22U);
  EXPECT_EQ(record.pin_batches, 23U);
  EXPECT_EQ(record.merged, 24U);
  EXPECT_EQ(record.observed, 25U);
  EXPECT_EQ(record.access, 26U);
  EXPECT_EQ(record.flags, 27U);
  EXPECT_EQ(record.purpose, 28U);
  EXPECT_EQ(record.entry, 29U);
  EXPECT_EQ(record.pages, 9U);
  EXPECT_EQ(record.page_size, 4096U);
  EXPECT_EQ(record.slow_ns, 10U);
  EXPECT_EQ(record.probe_cost_ns, 11U);
  EXPECT_EQ(record.tid, 11);
  EXPECT_EQ(record.tgid, 12);
  EXPECT_EQ(record.vtid, 13);
  EXPECT_EQ(record.vtgid, 14);
  EXPECT_EQ(TextOf(record.comm), "a_program_of_15");
  EXPECT_EQ(TextOf(record.device), "rxe0");
}

TEST(DecodeTest, DeregistrationsHaveTheirOwnStagesAndOwner) {
  EventBuilder event("mr_dereg", 78);
  std::uint64_t value = 1;
  for (const char* stage : kDeregStage) event.U64(std::string(stage) + "_ns", value++);
  for (const char* name :
       {"entry", "flags", "observed", "merged", "sg_entries", "nvcsw", "nivcsw", "lkey", "rkey"}) {
    event.U32(name, value++);
  }
  event.U32("op", MRSCOPE_OP_DEREG).S32("ret", 0);
  for (const char* name : {"tid", "tgid", "vtid", "vtgid", "owner_tgid"}) event.S32(name, 55);
  for (const char* name :
       {"seq", "start_ns", "total_ns", "addr", "length", "iova", "pages", "probe_cost_ns"}) {
    event.U64(name, 66);
  }
  event.Text("comm", 16, "kworker").Text("owner_comm", 16, "prog").DataLoc("device", "mlx5_0");
  EventDecoder decoder;
  const auto added = decoder.AddFormat("mrscope", event.format());
  ASSERT_TRUE(added) << added.error().message;
  // Two formats with one id would shadow each other: the builder gives 77 in
  // the text and this id in the data.
  std::vector<std::byte> data = event.data();
  const std::uint16_t id = 77;
  std::memcpy(data.data(), &id, sizeof(id));
  const auto decoded = decoder.Decode(1, data);
  ASSERT_TRUE(decoded);
  const auto& record = std::get<KernelRecord>(decoded->what);
  EXPECT_TRUE(record.is_dereg());
  EXPECT_EQ(record.stage_ns.at(MRSCOPE_DEREG_FREE), 6U);
  EXPECT_EQ(record.owner_tgid, 55);
  EXPECT_EQ(TextOf(record.owner_comm), "prog");
  EXPECT_EQ(TextOf(record.device), "mlx5_0");
}

TEST(DecodeTest, AMissingFieldIsNamed) {
  const EventBuilder event = RegEvent("pin_batches");
  EventDecoder decoder;
  const auto added = decoder.AddFormat("mrscope", event.format());
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().kind, ErrorKind::kPrerequisite);
  EXPECT_NE(added.error().message.find("pin_batches"), std::string::npos);
}

TEST(DecodeTest, NonsenseIsRefused) {
  EventDecoder decoder;
  EXPECT_FALSE(decoder.AddFormat("mrscope", ""));
  EXPECT_FALSE(decoder.AddFormat("mrscope", "name: mr_reg\nwhat?\n"));
}

TEST(DecodeTest, UnknownAndShortEventsAreSkipped) {
  EventDecoder decoder;
  EXPECT_FALSE(decoder.Decode(1, RegEvent().data()));
  ASSERT_TRUE(decoder.AddFormat("mrscope", RegEvent().format()));
  EXPECT_FALSE(decoder.Decode(1, {}));
  EXPECT_FALSE(decoder.Decode(1, EventBuilder("other", 5).data()));
  // Cut off in the middle: no read beyond the end (the sanitizers watch).
  auto data = RegEvent().data();
  data.resize(60);
  EXPECT_TRUE(decoder.Decode(1, data));
}

TEST(DecodeTest, TheHeaderPageTellsTheSubBuffer) {
  EventDecoder decoder;
  ASSERT_TRUE(
      decoder.AddHeaderPage("\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
                            "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
                            "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
                            "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n"));
  EXPECT_EQ(decoder.subbuffer_size().value, 4096U);
}

TEST(DecodeTest, SchedulerEvents) {
  EventDecoder decoder;
  EventBuilder fork("sched_process_fork", 77);
  fork.Text("parent_comm", 16, "sh").Number("pid_t", "parent_pid", 4, 20);
  fork.Text("child_comm", 16, "sh").Number("pid_t", "child_pid", 4, 21);
  ASSERT_TRUE(decoder.AddFormat("sched", fork.format()));
  const auto forked = decoder.Decode(1, fork.data());
  ASSERT_TRUE(forked);
  EXPECT_EQ(std::get<ForkEvent>(forked->what).parent, 20);
  EXPECT_EQ(std::get<ForkEvent>(forked->what).child, 21);

  EventDecoder exec_decoder;
  EventBuilder exec("sched_process_exec", 77);
  exec.DataLoc("filename", "/bin/true").Number("pid_t", "pid", 4, 21);
  ASSERT_TRUE(exec_decoder.AddFormat("sched", exec.format()));
  const auto executed = exec_decoder.Decode(1, exec.data());
  ASSERT_TRUE(executed);
  EXPECT_EQ(std::get<ExecEvent>(executed->what).filename, "/bin/true");
}

TEST(DecodeTest, MarkersTellWhoWrote) {
  EventDecoder decoder;
  EventBuilder print("print", 77);
  print.Number("unsigned long", "ip", 8, 0).Text("buf", 0, "");
  ASSERT_TRUE(decoder.AddFormat("ftrace", print.format()));
  auto data = print.data();
  for (const char c : std::string_view("hello\n\0", 7)) data.push_back(static_cast<std::byte>(c));
  const auto marked = decoder.Decode(1, data);
  ASSERT_TRUE(marked);
  EXPECT_EQ(std::get<MarkerEvent>(marked->what).tid, 4321);
  EXPECT_EQ(std::get<MarkerEvent>(marked->what).text, "hello\n");
}

}  // namespace
}  // namespace mrscope
