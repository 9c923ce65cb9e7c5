// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Processes that use a lab device in all ways at once, check every byte, fork,
// and are killed in the middle of it, for a while, by chance.
//
// Usage: lab_stress [--seconds N] [--seed N] [--workers N] [--no-kills]
//        lab_stress --replay SEED
//   --workers N   processes at a time; one that ends is followed by another
//   --no-kills    all of them end well, and have undone what they did
//   --one-mapping no page is mapped for the device twice, for kernels that check
//                 the use of the DMA API (lab_worker.h)
//   --replay SEED one process, of the seed that a failure has told
// Ends early, and well, on SIGTERM. Prints what was done as "NAME NUMBER" lines
// (lab_counts.h). Exit status 1: a process found a byte or a status that is not
// what it must be, or died of what nobody sent.

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <thread>

#include "device.h"
#include "lab_counts.h"
#include "lab_worker.h"
#include "options.h"
#include "process_pool.h"
#include "random.h"

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void RunWorker(std::uint64_t seed, bool one_mapping, Counter& steps) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto context = mrscope::Context::Open("mrlab0");
  if (!context) Die(context.error().message);
  {
    Worker worker(context->get(), seed, one_mapping);
    for (; !stop; ++steps) worker.Step();
  }
  std::fflush(nullptr);
  _exit(0);
}

class Stress {
 public:
  Stress(std::uint64_t seed, std::size_t workers, bool kills, bool one_mapping)
      : random_(seed), pool_(workers), kills_(kills), one_mapping_(one_mapping) {}

  bool Run(std::chrono::seconds time) {
    const auto until = Clock::now() + time;
    for (ProcessSlot& slot : pool_.slots()) Fill(slot);
    while (!stop && pool_.good() && Clock::now() < until) {
      for (ProcessSlot& slot : pool_.slots())
        if (kills_ && !slot.killed && StepsOf(slot) >= slot.life) Kill(slot);
      while (pool_.Reap(WNOHANG))
        for (ProcessSlot& slot : pool_.slots())
          if (slot.pid == 0) Fill(slot);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    for (const ProcessSlot& slot : pool_.slots())
      if (slot.pid != 0) kill(slot.pid, SIGTERM);
    pool_.ReapAll();
    return pool_.good();
  }

 private:
  Counter& StepsOf(const ProcessSlot& slot) { return shared->steps[pool_.IndexOf(slot)]; }

  void Fill(ProcessSlot& slot) {
    const std::uint64_t seed = random_.Below(1'000'000'000);
    slot.killed = false;
    slot.life = random_.Below(250);
    StepsOf(slot) = 0;
    slot.pid = pool_.Start([&] { RunWorker(seed, one_mapping_, StepsOf(slot)); });
    Count(Did::kProcess);
  }

  void Kill(ProcessSlot& slot) {
    pool_.Kill(slot);
    Count(Did::kKilled);
  }

  Random random_;
  ProcessPool<ProcessSlot> pool_;
  bool kills_;
  bool one_mapping_;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options({argv, static_cast<std::size_t>(argc)}, {{"--seconds", "10"},
                                                                 {"--seed", "1"},
                                                                 {"--workers", "8"},
                                                                 {"--no-kills", ""},
                                                                 {"--one-mapping", ""},
                                                                 {"--replay", "no"}});
  StopOnSigterm();
  shared = MapShared<Shared>();
  const bool one_mapping = options.Flag("--one-mapping");
  if (options.Text("--replay") != "no")
    RunWorker(options.Number("--replay"), one_mapping, shared->steps[0]);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::uint64_t workers = std::min(options.Number("--workers"), std::uint64_t{kMostWorkers});
  Stress stress(options.Number("--seed"), workers, !options.Flag("--no-kills"), one_mapping);
  const bool good = stress.Run(std::chrono::seconds(options.Number("--seconds")));
  for (std::size_t i = 0; i < kCounts; ++i)
    std::printf("%s %" PRIu64 "\n", kCountNames[i], shared->counts[i].load());
  return good ? 0 : 1;
}
