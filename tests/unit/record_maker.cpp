// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "record_maker.h"

#include <algorithm>
#include <string_view>

#include "mrscope.h"

namespace mrscope::test {
namespace {

template <std::size_t N>
void SetText(std::array<char, N>& array, std::string_view text) {
  std::copy(text.begin(), text.end(), array.begin());
}

KernelRecord MakeBase(std::uint64_t start_ns) {
  KernelRecord record;
  record.start_ns = start_ns;
  record.addr = 0x7f0000001000;
  record.length = 4096;
  record.iova = record.addr;
  record.flags = MRSCOPE_F_ADDR | MRSCOPE_F_LKEY | MRSCOPE_F_UMEM | MRSCOPE_F_SG | MRSCOPE_F_OWNER;
  record.pages = 1;
  record.sg_entries = 1;
  record.lkey = 0x1200;
  record.rkey = 0x1200;
  record.tid = record.tgid = record.vtid = record.vtgid = 100;
  SetText(record.comm, "prog");
  SetText(record.device, "rxe0");
  return record;
}

}  // namespace

KernelRecord MakeReg(std::uint64_t start_ns, std::uint64_t stage_ns) {
  KernelRecord record = MakeBase(start_ns);
  record.op = Op::kReg;
  record.flags |= MRSCOPE_F_ACCESS | MRSCOPE_F_DMA | MRSCOPE_F_PIN;
  record.access = 7;
  record.page_size = 4096;
  record.pin_batches = 1;
  record.dma_entries = 1;
  record.faults_minor = 1;
  record.observed = (1U << MRSCOPE_REG_STAGES) - 1;
  for (unsigned stage = 0; stage < MRSCOPE_REG_STAGES; ++stage) {
    if (stage == MRSCOPE_REG_ATTACH || stage == MRSCOPE_REG_UNWIND) continue;
    record.stage_ns.at(stage) = stage_ns;
    record.total_ns += stage_ns;
  }
  return record;
}

KernelRecord MakeDereg(std::uint64_t start_ns, std::uint64_t stage_ns) {
  KernelRecord record = MakeBase(start_ns);
  record.op = Op::kDereg;
  record.observed = (1U << MRSCOPE_DEREG_STAGES) - 1;
  for (unsigned stage = 0; stage < MRSCOPE_DEREG_STAGES; ++stage) {
    record.stage_ns.at(stage) = stage_ns;
    record.total_ns += stage_ns;
  }
  record.owner_tgid = record.tgid;
  SetText(record.owner_comm, "prog");
  return record;
}

UserCall CallAround(const KernelRecord& record, std::uint64_t before, std::uint64_t after) {
  UserCall call;
  call.op = record.op;
  call.vtid = record.vtid;
  call.addr = record.addr;
  call.length = record.length;
  call.access = record.access;
  call.start = Nanoseconds(record.start_ns - before);
  call.end = Nanoseconds(record.end_ns() + after);
  if (record.ret == 0) {
    call.lkey = record.lkey | 0x34;
    call.rkey = record.rkey | 0x34;
  } else {
    call.error = -record.ret;
  }
  return call;
}

KernelRecord RandomRecord(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  const std::uint64_t start = 1000 + below(1'000'000'000);
  KernelRecord record = below(2) == 0 ? MakeReg(start) : MakeDereg(start);
  const unsigned stages =
      record.is_dereg() ? unsigned{MRSCOPE_DEREG_STAGES} : unsigned{MRSCOPE_REG_STAGES};
  record.stage_ns.fill(0);
  record.total_ns = 0;
  record.observed = 0;
  record.merged = 0;
  for (unsigned stage = 0; stage < stages; ++stage) {
    switch (below(4)) {
      case 0:
        record.merged |= 1U << stage;
        break;
      case 1:
        break;  // null
      default:
        record.observed |= 1U << stage;
        record.stage_ns.at(stage) = below(1'000'000);
        record.total_ns += record.stage_ns.at(stage);
    }
  }
  if (below(4) == 0) record.flags &= ~MRSCOPE_F_ADDR;
  if (below(4) == 0) record.flags &= ~MRSCOPE_F_LKEY;
  if (!record.is_dereg() && below(4) == 0) record.flags |= MRSCOPE_F_NO_COMMIT;
  if (below(8) == 0) {
    record.ret = -12;
    record.failed_stage = static_cast<std::int32_t>(below(stages));
  }
  return record;
}

void Disarm(KernelRecord& record, unsigned stage) {
  const std::uint64_t time = record.stage_ns.at(stage);
  record.observed &= ~(1U << stage);
  record.stage_ns.at(stage) = 0;
  for (unsigned carrier = stage; carrier-- > 0;) {
    if ((record.observed & (1U << carrier)) == 0 || record.stage_ns.at(carrier) == 0) continue;
    record.stage_ns.at(carrier) += time;
    record.merged |= 1U << stage;
    return;
  }
  // No earlier stage: the record begins later.
  record.start_ns += time;
  record.total_ns -= time;
}

}  // namespace mrscope::test
