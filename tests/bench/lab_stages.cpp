// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What mrlab0 says of the stages of its registrations: one line for each size
// and kind of touched memory, to be read by tests/bench/lab-stages:
//
//   KIND SIZE total N check N pin N … sg N dma N entries N page N levels N
//
// Each stage is its fastest of some, in ns.

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <span>
#include <string>

#include "device.h"
#include "mrlabdv.h"
#include "mrscope/buffer.h"
#include "pair.h"

namespace {

constexpr int kTimes = 12;
constexpr std::array<const char*, MRLAB_STAGES> kNames = {MRLAB_STAGE_NAMES};
constexpr std::array<std::uint64_t, 5> kSizes = {4U << 10, 64U << 10, 1U << 20, 16U << 20,
                                                 64U << 20};
constexpr std::array<const char*, 3> kKinds = {"anon", "thp", "huge2m"};

mrlab_reg_mr_resp Fastest(ibv_pd* pd, const mrscope::Buffer& buffer) {
  mrlab_reg_mr_resp fastest{};
  std::fill_n(fastest.stage_ns, MRLAB_STAGES, std::numeric_limits<std::uint64_t>::max());
  for (int i = 0; i < kTimes; ++i) {
    const auto mr = Register(pd, buffer.data(), buffer.size().value, kAllAccess);
    mrlab_reg_mr_resp one{};
    if (mrlabdv_reg_stages(mr.get(), &one) != 0) Die("no stages");
    for (int stage = 0; stage < MRLAB_STAGES; ++stage)
      one.stage_ns[stage] = std::min(one.stage_ns[stage], fastest.stage_ns[stage]);
    fastest = one;
  }
  return fastest;
}

void Print(const char* kind, std::uint64_t size, const mrlab_reg_mr_resp& stages) {
  std::uint64_t total = 0;
  for (const std::uint64_t ns : stages.stage_ns) total += ns;
  std::printf("%s %llu total %llu", kind, static_cast<unsigned long long>(size),
              static_cast<unsigned long long>(total));
  for (int stage = 0; stage < MRLAB_STAGES; ++stage) {
    std::printf(" %s %llu", kNames[static_cast<std::size_t>(stage)],
                static_cast<unsigned long long>(stages.stage_ns[stage]));
  }
  std::printf(" sg %llu dma %u entries %llu page %llu levels %u\n",
              static_cast<unsigned long long>(stages.sg_entries), stages.dma_entries,
              static_cast<unsigned long long>(stages.table_entries), 1ULL << stages.page_shift,
              stages.levels);
}

}  // namespace

int main() {
  const auto context = mrscope::Context::Open("mrlab0");
  if (!context) Die(context.error().message);
  const auto pd = AllocatePd(context->get());
  for (const char* name : kKinds) {
    const auto kind = mrscope::FindBufferKind(name);
    if (!kind) Die(kind.error().message);
    for (const std::uint64_t size : kSizes) {
      mrscope::BufferOptions options;
      options.size = mrscope::Bytes{size};
      options.touched = true;
      const auto buffer = mrscope::Buffer::Create(**kind, options);
      if (!buffer) Die(buffer.error().message);
      Print(name, size, Fastest(pd.get(), *buffer));
    }
  }
  return 0;
}
