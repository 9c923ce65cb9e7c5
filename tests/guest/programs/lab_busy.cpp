// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Holds regions of a lab device and moves data between them without pause, until
// the device is gone, or until SIGTERM. Messages are large, so that many are on
// their way at any moment.
//
// Usage: lab_busy [--regions N] [--on-demand] [--size BYTES]
// Prints "ready", then at the end how many requests completed, and how it ended.

#include <sys/mman.h>

#include <csignal>
#include <iostream>
#include <vector>

#include "options.h"
#include "pair.h"

namespace {

volatile std::sig_atomic_t stopped = 0;

// A completion is waited for, but a device that is gone has none.
std::string Carry(Pair& pair, const ibv_send_wr& wr, std::span<ibv_sge> sges) {
  const int error = pair.requester.Post(wr, sges);
  if (error != 0) return std::string("post: ") + std::strerror(error);
  for (;;) {
    ibv_wc wc{};
    const int polled = ibv_poll_cq(pair.requester.cq(), 1, &wc);
    if (polled < 0) return "poll failed";
    if (polled == 1) return wc.status == IBV_WC_SUCCESS ? "" : ibv_wc_status_str(wc.status);
    sched_yield();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options options({argv, static_cast<std::size_t>(argc)},
                        {{"--regions", "8"}, {"--on-demand", ""}, {"--size", "262144"}});
  std::signal(SIGTERM, [](int) { stopped = 1; });
  auto context = mrscope::Context::Open("mrlab0");
  if (!context) Die(context.error().message);
  Pair pair(context->get());
  const std::size_t size = options.Number("--size");
  unsigned access = kAllAccess;
  if (options.Flag("--on-demand")) access |= IBV_ACCESS_ON_DEMAND;
  std::vector<char*> memory;
  std::vector<ibv_mr*> regions;  // left to the kernel
  for (std::uint64_t i = 0; i < options.Number("--regions"); ++i) {
    memory.push_back(MapMemory(size));
    ibv_pd* pd = i % 2 == 0 ? pair.requester.pd() : pair.responder.pd();
    regions.push_back(Register(pd, memory.back(), size, access).release());
  }
  std::cout << "ready" << std::endl;

  std::uint64_t done = 0;
  std::string failure;
  while (failure.empty() && stopped == 0) {
    const std::size_t from = 2 * (done % (regions.size() / 2));
    const auto opcode = done % 2 == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
    // Pages on demand come anew each time.
    if (options.Flag("--on-demand")) madvise(memory[from], size, MADV_DONTNEED);
    std::array<ibv_sge, 1> sge{Sge(*regions[from], 0, static_cast<std::uint32_t>(size))};
    failure = Carry(pair, Request(opcode, memory[from + 1], regions[from + 1]->rkey), sge);
    ++done;
  }
  std::cout << done << " requests, " << (failure.empty() ? "stopped" : failure) << std::endl;
  std::_Exit(0);  // nothing is taken back that is gone
}
