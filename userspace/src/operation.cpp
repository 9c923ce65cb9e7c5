// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/operation.h"

#include <stdexcept>

#include "mrscope.h"

namespace mrscope {
namespace {

constexpr std::size_t kFirstKernelStage = 1;  // behind `library`

bool Bit(std::uint32_t bits, std::size_t index) { return ((bits >> index) & 1U) != 0; }

std::size_t KernelStages(const KernelRecord& record) {
  return record.is_dereg() ? std::size_t{MRSCOPE_DEREG_STAGES} : std::size_t{MRSCOPE_REG_STAGES};
}

void SetKernelStages(const KernelRecord& record, StageTimes& stages) {
  // A merged stage's time is in the nearest earlier one that took any.
  std::optional<std::size_t> carrier;
  for (std::size_t i = 0; i < KernelStages(record); ++i) {
    const std::size_t stage = i + kFirstKernelStage;
    if (Bit(record.observed, i)) {
      stages.Set(stage, Nanoseconds(record.stage_ns.at(i)));
      if (record.stage_ns.at(i) != 0) carrier = stage;
    } else if (Bit(record.merged, i) && carrier) {
      stages.Merge(stage, *carrier);
    }
  }
}

// Stages before the first one the kernel told apart lie in what the caller
// measured in front of the record: its library.
void MergeLeadingStages(const KernelRecord& record, StageTimes& stages) {
  for (std::size_t i = 0; i < KernelStages(record) && !Bit(record.observed, i); ++i) {
    const bool is_syscall = i == 0;
    if (is_syscall || Bit(record.merged, i)) {
      stages.Merge(i + kFirstKernelStage, Index(RegStage::kLibrary));
    }
  }
}

// What follows the record. Where nothing marks the end of `publish`, that is in
// `publish`, or in the stage that contains it.
void SetReturn(const KernelRecord& record, Nanoseconds time, StageTimes& stages) {
  const std::size_t last = stages.size() - 1;
  if (record.is_dereg() || !record.Has(MRSCOPE_F_NO_COMMIT)) {
    stages.Set(last, time);
    return;
  }
  const auto publish = Index(RegStage::kPublish);
  const std::size_t carrier = stages.Carrier(publish).value_or(publish);
  stages.Set(carrier, stages.Get(carrier).value_or(Nanoseconds{0}) + time);
  stages.Merge(last, carrier);
}

}  // namespace

std::string_view JoinName(JoinState state) {
  switch (state) {
    case JoinState::kNone:
      return "none";
    case JoinState::kExact:
      return "exact";
    case JoinState::kByTime:
      return "by_time";
    case JoinState::kNoRecord:
      return "no_record";
    case JoinState::kAmbiguous:
      return "ambiguous";
    case JoinState::kKeyMismatch:
      return "key_mismatch";
  }
  return "none";
}

Operation::Operation(Op operation)
    : op(operation), stages(operation == Op::kDereg ? DeregStageNames() : RegStageNames()) {}

Operation MakeOperation(const KernelRecord& record) {
  Operation operation(record.op);
  const auto known = [&](std::uint32_t flag, std::uint64_t value) {
    return record.Has(flag) ? std::optional(value) : std::nullopt;
  };
  operation.total = Nanoseconds(record.total_ns);
  operation.kernel_total = operation.total;
  // No probe is for nothing: it is not known then.
  if (record.probe_cost_ns != 0) operation.probe_cost = Nanoseconds(record.probe_cost_ns);
  SetKernelStages(record, operation.stages);
  // The module promises this sum; a record that breaks it is not whole.
  operation.incomplete =
      record.Has(MRSCOPE_F_INCOMPLETE) || operation.stages.Sum() != operation.total;

  operation.seq = record.seq;
  operation.start = Nanoseconds(record.start_ns);
  operation.addr = known(MRSCOPE_F_ADDR, record.addr);
  operation.length = known(MRSCOPE_F_ADDR, record.length);
  operation.iova = known(MRSCOPE_F_ADDR, record.iova);
  operation.pages = known(MRSCOPE_F_UMEM, record.pages);
  operation.sg_entries = known(MRSCOPE_F_SG, record.sg_entries);
  operation.nvcsw = record.nvcsw;
  operation.nivcsw = record.nivcsw;
  if (!record.is_dereg()) {
    if (record.page_size != 0) operation.page_size = record.page_size;
    operation.pin_batches = known(MRSCOPE_F_PIN, record.pin_batches);
    operation.dma_entries = known(MRSCOPE_F_DMA, record.dma_entries);
    operation.faults_minor = record.faults_minor;
    operation.faults_major = record.faults_major;
    if (record.Has(MRSCOPE_F_DEEP)) {
      operation.slow_time = Nanoseconds(record.slow_ns);
      operation.slow_calls = record.slow_calls;
      operation.migrations = record.migrations;
    }
    if (record.Has(MRSCOPE_F_ACCESS)) operation.access = record.access;
    operation.purpose = PurposeName(record.purpose);
  }
  if (record.Has(MRSCOPE_F_LKEY)) {
    operation.lkey = record.lkey;
    operation.rkey = record.rkey;
    operation.whole_keys = record.Has(MRSCOPE_F_KEYS);
  }
  if (record.ret < 0) operation.error = -record.ret;
  if (record.failed_stage >= 0 &&
      static_cast<std::size_t>(record.failed_stage) < KernelStages(record)) {
    operation.failed_stage = static_cast<std::size_t>(record.failed_stage) + kFirstKernelStage;
  }
  operation.task = Task{record.tgid, record.tid, std::string(TextOf(record.comm))};
  if (record.is_dereg() && record.Has(MRSCOPE_F_OWNER)) {
    operation.owner = Task{record.owner_tgid, 0, std::string(TextOf(record.owner_comm))};
  }
  operation.device = TextOf(record.device);
  operation.entry = EntryName(record.entry);
  operation.nested = record.Has(MRSCOPE_F_NESTED);
  return operation;
}

Operation MakeUserOperation(const UserCall& call, JoinState why) {
  Operation operation(call.op);
  operation.join = why;
  operation.total = call.end - call.start;
  operation.start = call.start;
  operation.stages.Set(Index(RegStage::kLibrary), operation.total);
  for (std::size_t stage = 1; stage < operation.stages.size(); ++stage) {
    operation.stages.Merge(stage, Index(RegStage::kLibrary));
  }
  operation.addr = call.addr;
  operation.length = call.length;
  if (!operation.is_dereg()) operation.access = call.access;
  operation.lkey = call.lkey;
  operation.rkey = call.rkey;
  operation.whole_keys = call.lkey.has_value();
  if (call.error != 0) operation.error = call.error;
  return operation;
}

Operation MakeJoinedOperation(const KernelRecord& record, const UserCall& call, JoinState how) {
  const Nanoseconds kernel_start(record.start_ns);
  const Nanoseconds kernel_end(record.end_ns());
  if (kernel_start < call.start || kernel_end > call.end) {
    throw std::logic_error("a joined record lies within its call");
  }
  Operation operation = MakeOperation(record);
  operation.join = how;
  operation.total = call.end - call.start;
  operation.start = call.start;
  operation.stages.Set(Index(RegStage::kLibrary), kernel_start - call.start);
  MergeLeadingStages(record, operation.stages);
  SetReturn(record, call.end - kernel_end, operation.stages);
  if (!operation.addr) operation.addr = call.addr;
  if (!operation.length) operation.length = call.length;
  if (!operation.access && !operation.is_dereg()) operation.access = call.access;
  // The caller's errno is what libibverbs made of the kernel's.
  if (call.error != 0 && !operation.error) operation.error = call.error;
  return operation;
}

}  // namespace mrscope
