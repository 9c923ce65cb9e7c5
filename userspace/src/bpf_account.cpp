// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "bpf_account.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <numeric>

#include "mrscope.h"

namespace mrscope {
namespace {

constexpr std::uint32_t kOnDemand = 1U << 6;  // IB_ACCESS_ON_DEMAND
constexpr std::uint64_t kPage = 4096;
constexpr std::uint32_t kVariant = 0xff;  // of a key

constexpr std::uint32_t Bit(unsigned stage) { return 1U << stage; }

constexpr std::uint32_t kUmemStages =
    Bit(MRSCOPE_REG_ACCOUNT) | Bit(MRSCOPE_REG_PIN) | Bit(MRSCOPE_REG_SG) | Bit(MRSCOPE_REG_DMA);

// The boundary that a stage begins with.
constexpr std::array<unsigned, MRSCOPE_REG_UNWIND> kBegins = {
    MRS_BPF_IOCTL, MRS_BPF_ROOT, MRS_BPF_DRIVER, MRS_BPF_KEY, MRS_BPF_UMEM,  MRS_BPF_PIN,
    MRS_BPF_PIN,   MRS_BPF_DMA,  MRS_BPF_UMEM,   MRS_BPF_DMA, MRS_BPF_DRIVER};

std::uint64_t PagesAsked(const KernelRecord& record) {
  return (record.addr % kPage + record.length + kPage - 1) / kPage;
}

// Stages that this registration had no need of where they were not seen. A rereg
// may change the access or the domain alone.
std::uint32_t NotNeeded(const KernelRecord& record) {
  const bool on_demand = record.Has(MRSCOPE_F_ACCESS) && (record.access & kOnDemand) != 0;
  const bool no_memory = on_demand || record.op == Op::kRereg;
  return (record.op == Op::kRegDmabuf ? 0 : Bit(MRSCOPE_REG_ATTACH)) |
         (no_memory ? kUmemStages : 0);
}

// One boundary tells that another must have been crossed.
bool RegIncomplete(const KernelRecord& record, const BpfFacts& facts) {
  // Only reg_user_mr of the drivers is looked at.
  std::uint32_t expected =
      record.op == Op::kReg ? Bit(MRSCOPE_REG_PREPARE) | Bit(MRSCOPE_REG_PUBLISH) : 0;
  if ((record.observed & Bit(MRSCOPE_REG_ACCOUNT)) != 0) {
    expected |= kUmemStages;
  } else if ((record.observed & Bit(MRSCOPE_REG_PIN)) != 0) {  // a driver that pins itself
    expected |= kUmemStages & ~Bit(MRSCOPE_REG_ACCOUNT);
  }
  for (unsigned stage = MRSCOPE_REG_PREPARE; stage < MRSCOPE_REG_UNWIND; ++stage) {
    if ((expected & ~record.observed & Bit(stage)) != 0 && facts.attached[kBegins[stage]])
      return true;
  }
  return record.Has(MRSCOPE_F_UMEM) && record.pages != PagesAsked(record);
}

void AccountReg(KernelRecord& record, const mrs_bpf_operation& operation, const BpfFacts& facts) {
  const bool failed = record.ret != 0;
  if (failed && record.failed_stage < 0) {
    record.failed_stage = static_cast<std::int32_t>(operation.stage);
  }
  if (!failed && RegIncomplete(record, facts)) record.flags |= MRSCOPE_F_INCOMPLETE;

  const std::uint32_t none = NotNeeded(record);
  for (unsigned stage = MRSCOPE_REG_PREPARE; stage < MRSCOPE_REG_UNWIND; ++stage) {
    if ((record.observed & Bit(stage)) != 0) continue;
    const bool never_reached = failed && facts.attached[kBegins[stage]] &&
                               stage > static_cast<unsigned>(record.failed_stage);
    if ((none & Bit(stage)) != 0 || never_reached) {
      record.observed |= Bit(stage);
    } else if (stage != MRSCOPE_REG_KEY) {
      // The key's time may be in any stage of the driver.
      record.merged |= Bit(stage);
    }
  }
  // That nothing was pinned is known, too.
  if ((record.observed & Bit(MRSCOPE_REG_PIN)) != 0) record.flags |= MRSCOPE_F_PIN;
  if ((record.observed & Bit(MRSCOPE_REG_UNWIND)) != 0) return;
  (failed ? record.merged : record.observed) |= Bit(MRSCOPE_REG_UNWIND);
}

void AccountDereg(KernelRecord& record, const BpfFacts& facts) {
  const auto observed = [&](unsigned stage) { return (record.observed & Bit(stage)) != 0; };
  // Where destroying the uobject was not noted, the time before the root is the
  // caller's to know, and the part behind it says little alone.
  if (record.entry == MRSCOPE_ENTRY_UNKNOWN && observed(MRSCOPE_DEREG_INVALIDATE)) {
    record.start_ns += record.stage_ns[MRSCOPE_DEREG_UVERBS];
    record.stage_ns[MRSCOPE_DEREG_UVERBS] = 0;
    record.observed &= ~Bit(MRSCOPE_DEREG_UVERBS);
    record.merged |= Bit(MRSCOPE_DEREG_UVERBS);
  }
  if ((!observed(MRSCOPE_DEREG_INVALIDATE) && facts.attached[MRS_BPF_DRIVER]) ||
      ((observed(MRSCOPE_DEREG_UNMAP) || observed(MRSCOPE_DEREG_UNPIN)) &&
       !observed(MRSCOPE_DEREG_FREE))) {
    record.flags |= MRSCOPE_F_INCOMPLETE;
  }
  // Unmapping is told from unpinning only where there is none.
  if (observed(MRSCOPE_DEREG_UNPIN)) record.observed |= Bit(MRSCOPE_DEREG_UNMAP);
  for (unsigned stage = MRSCOPE_DEREG_INVALIDATE; stage < MRSCOPE_DEREG_STAGES; ++stage) {
    if (!observed(stage)) record.merged |= Bit(stage);
  }
}

// Times were taken at the beginning of each stage, and at the end of the last; a
// pin that took several calls went to and fro between two of them, and the object
// of a deregistration was noted before its root.
Nanoseconds CostOf(const mrs_bpf_operation& operation, const BpfCost& cost) {
  unsigned entries = static_cast<unsigned>(std::popcount(operation.observed)) - 1;
  if (operation.pin_batches > 1) entries += 2 * (operation.pin_batches - 1);
  if (operation.op == MRSCOPE_OP_DEREG && operation.entry != MRSCOPE_ENTRY_UNKNOWN &&
      operation.entry != MRSCOPE_ENTRY_KERNEL) {
    ++entries;
  }
  return cost.begin + cost.record + cost.entry * entries;
}

// Fields whose flag is not set were never written.
void CopyKnown(KernelRecord& record, const mrs_bpf_operation& operation, bool keys) {
  const auto copy = [&](std::uint32_t flag, auto& to, const auto& from) {
    if (record.Has(flag)) to = from;
  };
  copy(MRSCOPE_F_ADDR, record.addr, operation.addr);
  copy(MRSCOPE_F_ADDR, record.length, operation.length);
  copy(MRSCOPE_F_ADDR, record.iova, operation.iova);
  copy(MRSCOPE_F_ACCESS, record.access, operation.access);
  copy(MRSCOPE_F_SG, record.sg_entries, operation.sg_entries);
  copy(MRSCOPE_F_DMA, record.dma_entries, operation.dma_entries);
  copy(MRSCOPE_F_LKEY, record.lkey, operation.lkey);
  copy(MRSCOPE_F_LKEY, record.rkey, operation.rkey);
  if (record.Has(MRSCOPE_F_OWNER)) {
    record.owner_tgid = operation.owner_tgid;
    std::copy(std::begin(operation.owner_comm), std::end(operation.owner_comm),
              record.owner_comm.begin());
  }
  if (keys) {
    record.flags |= MRSCOPE_F_KEYS;
  } else {
    record.lkey &= ~kVariant;
    record.rkey &= ~kVariant;
  }
}

}  // namespace

KernelRecord RecordOf(const mrs_bpf_operation& operation, const BpfFacts& facts) {
  KernelRecord record;
  record.start_ns = operation.start_ns;
  std::copy(std::begin(operation.ns), std::end(operation.ns), record.stage_ns.begin());
  record.op = operation.op <= MRSCOPE_OP_DEREG ? static_cast<Op>(operation.op) : Op::kUnknown;
  record.entry = operation.entry;
  record.purpose = MRSCOPE_PURPOSE_UNKNOWN;
  record.flags = operation.flags;
  record.ret = operation.ret;
  record.failed_stage = operation.failed_stage;
  record.observed = operation.observed;
  record.pages = operation.pages;
  record.pin_batches = operation.pin_batches;
  record.faults_minor = operation.faults_minor;
  record.faults_major = operation.faults_major;
  record.nvcsw = operation.nvcsw;
  record.nivcsw = operation.nivcsw;
  record.tid = operation.tid;
  record.tgid = operation.tgid;
  record.vtid = operation.vtid;
  record.vtgid = operation.vtgid;
  std::copy(std::begin(operation.comm), std::end(operation.comm), record.comm.begin());
  CopyKnown(record, operation, facts.keys);
  if (facts.cost) {
    record.probe_cost_ns = static_cast<std::uint64_t>(CostOf(operation, *facts.cost).count());
  }
  if (record.is_dereg()) {
    AccountDereg(record, facts);
  } else {
    record.flags |= MRSCOPE_F_NO_COMMIT;
    AccountReg(record, operation, facts);
  }
  record.total_ns =
      std::accumulate(record.stage_ns.begin(), record.stage_ns.end(), std::uint64_t{0});
  return record;
}

}  // namespace mrscope
