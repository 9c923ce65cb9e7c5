// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Commands of the uverbs ABI to mrlab0, plausible ones and mutations of these,
// from several processes at once, some of which are killed.
//
// Usage: lab_fuzz [--commands N] [--seed N] [--workers N] [--patience SECONDS]
//        lab_fuzz --replay SEED
//   --patience SECONDS  one command may take so long
//   --replay SEED       one process, of the seed that a failure has told
// Prints each kind of command and how often it had each outcome:
//   NAME succeeded N, ERRNO N, ...
// and at the end how many there were, and how many of them succeeded. Exit status
// 1: a command did not come back, or a process died of what nobody sent.

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "device.h"
#include "fuzz_arena.h"
#include "fuzz_context.h"
#include "fuzz_tally.h"
#include "mrscope/file.h"
#include "options.h"
#include "process_pool.h"
#include "random.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kContexts = 6;  // of a process
constexpr std::uint64_t kSteps = 400;   // of a context, about

Tally* tally = nullptr;

// The character device of mrlab0.
std::string FindDevice() {
  const std::string folder = "/sys/class/infiniband_verbs/";
  DIR* entries = opendir(folder.c_str());
  if (entries == nullptr) Die("no verbs devices");
  std::string found;
  while (const dirent* entry = readdir(entries)) {  // NOLINT(concurrency-mt-unsafe)
    const auto device = mrscope::ReadFile(folder + entry->d_name + "/ibdev");
    if (device && *device == "mrlab0\n") found = std::string("/dev/infiniband/") + entry->d_name;
  }
  closedir(entries);
  if (found.empty()) Die("no mrlab0");
  return found;
}

[[noreturn]] void RunWorker(const std::string& path, std::uint64_t seed, std::size_t process) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Random random(seed);
  const Arena arena;
  for (std::uint64_t i = 0; i < kContexts; ++i) {
    FuzzContext context(path, arena, random, *tally, process);
    for (std::uint64_t left = kSteps / 2 + random.Below(kSteps); left > 0; --left) context.Step();
  }
  _exit(0);
}

class Fuzz {
 public:
  Fuzz(std::string path, std::uint64_t seed, std::size_t workers, std::chrono::seconds patience)
      : path_(std::move(path)), random_(seed), slots_(workers), patience_(patience) {}

  bool Run(std::uint64_t commands) {
    while (good_ && tally->commands < commands) {
      for (std::size_t i = 0; i < slots_.size(); ++i) Watch(i);
      Reap(WNOHANG);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    for (const Slot& slot : slots_)
      if (slot.pid != 0) kill(slot.pid, SIGKILL);
    for (Slot& slot : slots_) slot.killed = true;
    // What hangs cannot be killed: it is told, not waited for.
    while (good_ && Reap(0)) {
    }
    return good_;
  }

  std::uint64_t killed() const { return killed_; }

 private:
  struct Slot {
    pid_t pid = 0;
    std::uint64_t seed = 0;
    bool killed = false;
    std::uint64_t life = 0;   // in commands; 0: until it ends
    std::uint64_t seen = 0;   // of its commands
    Clock::time_point since;  // that it has been at this one
  };

  void Watch(std::size_t at) {
    Slot& slot = slots_[at];
    if (slot.pid == 0) return Fill(at);
    const std::uint64_t begun = tally->begun[at];
    if (begun != slot.seen) {
      slot.seen = begun;
      slot.since = Clock::now();
    }
    if (slot.life != 0 && begun >= slot.life && !slot.killed) {
      kill(slot.pid, SIGKILL);
      slot.killed = true;
      ++killed_;
    }
    if (Clock::now() - slot.since < patience_) return;
    const auto stack = mrscope::ReadFile("/proc/" + std::to_string(slot.pid) + "/stack");
    std::fprintf(stderr, "seed %" PRIu64 ": %s has not come back, command %" PRIu64 "\n%s",
                 slot.seed, FuzzContext::Names()[tally->kind[at]].c_str(), begun,
                 stack ? stack->c_str() : "");
    good_ = false;
  }

  void Fill(std::size_t at) {
    Slot& slot = slots_[at];
    slot = {};
    slot.seed = random_.Below(1'000'000'000);
    if (random_.Percent(40)) slot.life = 1 + random_.Below(kContexts * kSteps);
    slot.since = Clock::now();
    tally->begun[at] = 0;
    slot.pid = fork();
    if (slot.pid < 0) Die("cannot fork");
    if (slot.pid == 0) RunWorker(path_, slot.seed, at);
  }

  bool Reap(int flags) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, flags);
    if (pid <= 0) return false;
    const auto slot =
        std::find_if(slots_.begin(), slots_.end(), [pid](const Slot& s) { return s.pid == pid; });
    if (slot == slots_.end()) return true;
    slot->pid = 0;
    if (slot->killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) return true;
    std::fprintf(stderr, "seed %" PRIu64 ": the process ended with status %#x\n", slot->seed,
                 status);
    good_ = false;
    return true;
  }

  std::string path_;
  Random random_;
  std::vector<Slot> slots_;
  std::chrono::seconds patience_;
  std::uint64_t killed_ = 0;
  bool good_ = true;
};

void Print(std::uint64_t killed, double seconds) {
  const auto names = FuzzContext::Names();
  std::uint64_t good = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& outcomes = tally->outcomes[i];
    good += outcomes[0];
    std::printf("%s succeeded %" PRIu64, names[i].c_str(), outcomes[0].load());
    for (std::size_t error = 1; error < kMostErrnos; ++error)
      if (outcomes[error] != 0)
        std::printf(", %s %" PRIu64, mrscope::ErrnoName(static_cast<int>(error)).c_str(),
                    outcomes[error].load());
    std::printf("\n");
  }
  const std::uint64_t total = tally->commands;
  std::printf("commands %" PRIu64 "\nsucceeded %" PRIu64 "\nplain %" PRIu64
              "\nplain_succeeded %" PRIu64 "\nkilled %" PRIu64 "\nper_second %.0f\n",
              total, good, tally->plain.load(), tally->plain_good.load(), killed,
              static_cast<double>(total) / seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options({argv, static_cast<std::size_t>(argc)}, {{"--commands", "10000"},
                                                                 {"--seed", "1"},
                                                                 {"--workers", "4"},
                                                                 {"--patience", "60"},
                                                                 {"--replay", "no"}});
  tally = MapShared<Tally>();
  const std::string path = FindDevice();
  if (options.Text("--replay") != "no") RunWorker(path, options.Number("--replay"), 0);
  const auto begun = Clock::now();
  const std::uint64_t workers =
      std::min(options.Number("--workers"), std::uint64_t{kMostProcesses});
  Fuzz fuzz(path, options.Number("--seed"), workers,
            std::chrono::seconds(options.Number("--patience")));
  const bool good = fuzz.Run(options.Number("--commands"));
  Print(fuzz.killed(), std::chrono::duration<double>(Clock::now() - begun).count());
  return good ? 0 : 1;
}
