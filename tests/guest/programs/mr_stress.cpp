// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Processes and threads that register all kinds of memory in all manners, fork
// and are killed in the middle of it, for a while, by chance.
//
// Usage: mr_stress [--seconds N] [--seed N] [--workers N] [--threads N]
//                  [--method] [--failing] [--pressure]
//   --workers N   processes at a time, each of N threads; one that ends is
//                 followed by another
//   --method      register by the ioctl method as well
//   --failing     make allocations inside of calls fail (/proc/PID/fail-nth)
//   --pressure    fill and free the memory that is left, too
// Two runs of one seed decide the same; the kernel's threads interleave anew.
// Ends early, and well, on SIGTERM. Prints what was done as "NAME NUMBER"
// lines (kNames). Exit status 1: a program died of what nobody sent, or pages
// were still accounted to one that had deregistered everything.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device.h"
#include "mrscope/buffer.h"
#include "mrscope/file.h"
#include "options.h"
#include "process_pool.h"
#include "random.h"
#include "registration.h"

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kPage = 4096;

// ---- what was done, in memory that all processes share ----

enum Count : std::size_t {
  kRegBegun,
  kRegOk,
  kRegFailed,
  kDeregBegun,
  kDeregOk,
  kDeregFailed,
  kReregBegun,
  kReregOk,
  kForks,
  kInjected,
  kProcesses,
  kKilled,
  kLeft,
  kCounts
};

constexpr std::array<const char*, kCounts> kNames = {
    "reg_begun", "reg_ok", "reg_failed", "dereg_begun", "dereg_ok", "dereg_failed", "rereg_begun",
    "rereg_ok",  "forks",  "injected",   "processes",   "killed",   "left"};

// What a process has done so far; its life is measured by that, not by time, so
// that it gets somewhere however slow the machine is.
using Steps = std::atomic<std::uint64_t>;
constexpr std::size_t kMostWorkers = 16;

using Counts = std::array<std::atomic<std::uint64_t>, kCounts>;
static_assert(Steps::is_always_lock_free);

struct Shared {
  Counts counts{};
  std::array<Steps, kMostWorkers> steps{};
};

Shared* shared = nullptr;

void Did(Count what) { ++shared->counts[what]; }

struct Plan {
  std::uint64_t seed = 1;
  unsigned threads = 1;
  bool method = false;
  bool failing = false;
};

// ---- memory ----

struct Memory {
  std::optional<mrscope::Buffer> buffer;
  std::optional<mrscope::Mapping> mapping;
  char* data = nullptr;
  std::size_t size = 0;
  bool writable = true;
};

// Mostly a few pages, now and then megabytes.
std::size_t SomeSize(Random& random) {
  const std::uint64_t dice = random.Below(100);
  const std::size_t most = dice < 90 ? 8 : dice < 99 ? 128 : 2048;
  return (1 + random.Below(most)) * kPage;
}

using MemoryPointer = std::shared_ptr<Memory>;

MemoryPointer SharedMemory(std::size_t size, int fd, int flags) {
  void* base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);
  if (base == MAP_FAILED) return nullptr;
  auto memory = std::make_shared<Memory>();
  memory->mapping.emplace(base, size);
  memory->data = static_cast<char*>(base);
  memory->size = size;
  return memory;
}

// Of a file on disk: a long-term pin of it is refused by newer kernels.
MemoryPointer FileMemory(std::size_t size) {
  const int fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  MemoryPointer memory;
  if (ftruncate(fd, static_cast<off_t>(size)) == 0) memory = SharedMemory(size, fd, 0);
  close(fd);
  return memory;
}

// What a host lacks, such as free huge pages, is left out.
MemoryPointer SomeMemory(Random& random) {
  const std::size_t size = SomeSize(random);
  const std::uint64_t dice = random.Below(100);
  if (dice < 10) return SharedMemory(size, -1, MAP_ANONYMOUS);
  if (dice < 13) return FileMemory(size);
  const auto kinds = mrscope::BufferKinds();
  mrscope::BufferOptions options;
  options.size = {size};
  options.touched = random.Percent(60);
  options.read_only = random.Percent(5);
  options.unmapped = !options.read_only && random.Percent(3);
  // The first kind is the cheapest by far.
  const std::size_t kind = random.Percent(70) ? 0 : random.Below(kinds.size());
  auto buffer = mrscope::Buffer::Create(kinds[kind], options);
  if (!buffer) return nullptr;
  auto memory = std::make_shared<Memory>();
  memory->data = static_cast<char*>(buffer->data());
  memory->size = size;
  memory->writable = !options.read_only && !options.unmapped;
  memory->buffer.emplace(*std::move(buffer));
  return memory;
}

// ---- one thread ----

// The Nth allocation of the thread fails, from now until this goes. No file
// (-1): none does.
class Failure {
 public:
  Failure(int fd, std::uint64_t nth) : fd_(fd) { Write(nth); }
  Failure(const Failure&) = delete;
  Failure& operator=(const Failure&) = delete;
  ~Failure() {
    char left[16] = {};
    if (fd_ < 0) return;
    if (pread(fd_, left, sizeof left - 1, 0) > 0 && left[0] == '0') Did(kInjected);
    Write(0);
  }

 private:
  void Write(std::uint64_t nth) const {
    if (fd_ < 0) return;
    const std::string text = std::to_string(nth);
    if (pwrite(fd_, text.data(), text.size(), 0) < 0) Die("cannot write fail-nth");
  }

  int fd_;
};

class Thread {
 public:
  Thread(const Device& device, const Plan& plan, std::uint64_t seed)
      : device_(device), plan_(plan), random_(seed) {}

  void Run(Steps& steps) {
    if (plan_.failing) fail_fd_ = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
    for (; !stop; ++steps) Step();
    if (fail_fd_ >= 0) close(std::exchange(fail_fd_, -1));
  }

  // Each registration is undone.
  void Finish() {
    while (!held_.empty()) Deregister(0);
  }

  std::size_t held() const { return held_.size(); }

 private:
  struct Held {
    Call call;
    std::unique_ptr<Registration> registration;
    MemoryPointer memory;
  };

  void Step() {
    const std::uint64_t dice = random_.Below(1000);
    if (pool_.size() < kPool) {
      if (auto memory = SomeMemory(random_)) pool_.push_back(std::move(memory));
    } else if (dice < 10) {
      pool_.erase(pool_.begin() + static_cast<std::ptrdiff_t>(random_.Below(pool_.size())));
    } else if (dice < 12) {
      Fork();
    } else if (dice < 30 && !held_.empty()) {
      Rereg();
    } else if (held_.size() < kHeld && dice < 520) {
      Register(random_.Below(pool_.size()));
    } else if (!held_.empty()) {
      Deregister(random_.Below(held_.size()));
    }
  }

  // A few percent are refused: without local_write, or of memory that is not there.
  void Register(std::size_t at) {
    const MemoryPointer memory = pool_[at];
    Call call;
    const std::uint64_t offset = random_.Below(memory->size);
    call.addr = reinterpret_cast<std::uintptr_t>(memory->data) + offset;
    call.length = 1 + random_.Below(memory->size - offset);
    call.access = random_.Percent(2) ? unsigned{IBV_ACCESS_REMOTE_WRITE}
                                     : unsigned{IBV_ACCESS_LOCAL_WRITE} |
                                           (random_.Below(2) * IBV_ACCESS_REMOTE_READ);
    const std::uint64_t way = random_.Below(10);
    std::unique_ptr<Registration> registration;
    Did(kRegBegun);
    {
      const Failure failure = MaybeFail();
      registration = way == 0                   ? ByWrite(device_, call)
                     : way == 1 && plan_.method ? ByMethod(device_, call)
                                                : ByLibrary(device_, call);
    }
    Did(registration ? kRegOk : kRegFailed);
    // The memory may go while it is registered: the pages stay.
    if (registration)
      held_.push_back({call, std::move(registration), random_.Percent(80) ? memory : nullptr});
  }

  void Deregister(std::size_t at) {
    Did(kDeregBegun);
    int error = 0;
    {
      const Failure failure = MaybeFail();
      error = held_[at].registration->Deregister();
    }
    Did(error == 0 ? kDeregOk : kDeregFailed);
    if (error == 0) held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void Rereg() {
    auto* registration = dynamic_cast<WriteRegistration*>(held_.back().registration.get());
    if (registration == nullptr) return;
    ReregMrBody body;
    ib_uverbs_rereg_mr_resp answer{};
    body.response = reinterpret_cast<std::uintptr_t>(&answer);
    body.mr_handle = registration->handle();
    body.flags = IBV_REREG_MR_CHANGE_ACCESS;
    body.access_flags = IBV_ACCESS_LOCAL_WRITE;
    Did(kReregBegun);
    if (WriteCommand(device_.context.get()->cmd_fd, IB_USER_VERBS_CMD_REREG_MR, body,
                     sizeof answer) == 0)
      Did(kReregOk);
  }

  // A child that writes to what may be pinned, and outlives a parent that is
  // killed now: then the file is closed, and the MRs destroyed, by the child.
  void Fork() {
    const Memory& memory = *pool_[random_.Below(pool_.size())];
    const auto linger = static_cast<useconds_t>(random_.Below(50'000));
    Did(kForks);
    if (fork() != 0) return;
    if (memory.writable) {
      for (std::size_t offset = 0; offset < memory.size; offset += kPage)
        static_cast<volatile char*>(memory.data)[offset] = 1;
    }
    usleep(linger);
    _exit(0);
  }

  Failure MaybeFail() {
    const std::uint64_t nth = 1 + random_.Below(40);
    return {random_.Percent(20) ? fail_fd_ : -1, nth};
  }

  static constexpr std::size_t kPool = 6;
  static constexpr std::size_t kHeld = 12;

  const Device& device_;
  const Plan& plan_;
  Random random_;
  int fail_fd_ = -1;
  std::vector<MemoryPointer> pool_;
  std::vector<Held> held_;
};

// ---- one process ----

enum class End { kWell, kLeaves, kKilled };

std::uint64_t PinnedKilobytes() {
  const auto status = mrscope::ReadFile("/proc/self/status");
  if (!status) Die("cannot read /proc/self/status");
  const std::size_t at = status->find("VmPin:");
  return at == std::string::npos ? 0 : std::strtoull(&(*status)[at + 6], nullptr, 10);
}

// Never returns to what its parent has on the stack.
[[noreturn]] void RunWorker(const Plan& plan, std::uint64_t seed, End end, Steps& steps,
                            std::uint64_t life) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGCHLD, SIG_IGN);
  const Device device;
  std::vector<std::unique_ptr<Thread>> workers;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < plan.threads; ++i) {
    workers.push_back(std::make_unique<Thread>(device, plan, seed * 100 + i));
    threads.emplace_back([&worker = *workers.back(), &steps] { worker.Run(steps); });
  }
  while (!stop && (end == End::kKilled || steps < life))
    std::this_thread::sleep_for(milliseconds(20));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  if (end == End::kLeaves) {
    for (const auto& worker : workers)
      for (std::size_t i = 0; i < worker->held(); ++i) Did(kLeft);
    _exit(0);
  }
  for (const auto& worker : workers) worker->Finish();
  const std::uint64_t pinned = PinnedKilobytes();
  if (pinned != 0) std::fprintf(stderr, "%lu kB are still accounted as pinned\n", pinned);
  _exit(pinned == 0 ? 0 : 1);
}

// Holds what memory is left but for a margin, and moves the margin about.
[[noreturn]] void RunPressure() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  constexpr std::size_t kMargin = std::size_t{256} << 20;
  constexpr std::size_t kPart = std::size_t{8} << 20;
  const auto meminfo = mrscope::ReadFile("/proc/meminfo");
  const std::size_t at = meminfo ? meminfo->find("MemAvailable:") : std::string::npos;
  if (at == std::string::npos) Die("cannot read /proc/meminfo");
  const std::size_t left = std::strtoull(&(*meminfo)[at + 13], nullptr, 10) * 1024;
  std::vector<char*> parts(left > kMargin ? (left - kMargin) / kPart : 0);
  for (std::size_t i = 0; !parts.empty() && !stop; i = (i + 1) % parts.size()) {
    if (parts[i] != nullptr) {
      munmap(parts[i], kPart);
      usleep(200'000);
    }
    parts[i] = MapMemory(kPart);
    madvise(parts[i], kPart, MADV_HUGEPAGE);
    for (std::size_t offset = 0; offset < kPart; offset += kPage) parts[i][offset] = 1;
  }
  _exit(0);
}

// ---- all of them ----

struct Slot : ProcessSlot {
  End end = End::kWell;
};

class Stress {
 public:
  Stress(const Plan& plan, std::size_t workers, bool pressure)
      : plan_(plan), random_(plan.seed), pool_(workers), pressure_(pressure) {}

  bool Run(std::chrono::seconds time) {
    const auto until = Clock::now() + time;
    if (pressure_) helper_ = pool_.Start([] { RunPressure(); });
    for (Slot& slot : pool_.slots()) Fill(slot);
    while (!stop && Clock::now() < until) {
      for (Slot& slot : pool_.slots())
        if (slot.end == End::kKilled && !slot.killed && StepsOf(slot) >= slot.life) Kill(slot);
      while (pool_.Reap(WNOHANG)) {
        for (Slot& slot : pool_.slots())
          if (slot.pid == 0) Fill(slot);
      }
      std::this_thread::sleep_for(milliseconds(10));
    }
    for (Slot& slot : pool_.slots()) {
      if (slot.pid == 0 || slot.killed) continue;
      if (slot.end == End::kKilled) {
        Kill(slot);
      } else {
        kill(slot.pid, SIGTERM);
      }
    }
    if (helper_ != 0) kill(helper_, SIGKILL);
    pool_.ReapAll();
    return pool_.good();
  }

 private:
  Steps& StepsOf(const Slot& slot) { return shared->steps[pool_.IndexOf(slot)]; }

  void Fill(Slot& slot) {
    const std::uint64_t seed = random_.Below(1'000'000'000);
    const std::uint64_t dice = random_.Below(10);
    slot.end = dice < 4 ? End::kWell : dice < 6 ? End::kLeaves : End::kKilled;
    slot.killed = false;
    slot.life = 20 + random_.Below(3000);
    StepsOf(slot) = 0;
    slot.pid = pool_.Start([&] { RunWorker(plan_, seed, slot.end, StepsOf(slot), slot.life); });
    Did(kProcesses);
  }

  void Kill(Slot& slot) {
    pool_.Kill(slot);
    Did(kKilled);
  }

  const Plan& plan_;
  Random random_;
  ProcessPool<Slot> pool_;
  bool pressure_;
  pid_t helper_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options({argv, static_cast<std::size_t>(argc)}, {{"--seconds", "10"},
                                                                 {"--seed", "1"},
                                                                 {"--workers", "3"},
                                                                 {"--threads", "3"},
                                                                 {"--method", ""},
                                                                 {"--failing", ""},
                                                                 {"--pressure", ""}});
  StopOnSigterm();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  shared = MapShared<Shared>();
  // The library finds its drivers once, not in each process.
  { const Device device; }

  Plan plan;
  plan.seed = options.Number("--seed");
  plan.threads = static_cast<unsigned>(options.Number("--threads"));
  plan.method = options.Flag("--method");
  plan.failing = options.Flag("--failing");
  const std::uint64_t workers = std::min(options.Number("--workers"), std::uint64_t{kMostWorkers});
  Stress stress(plan, workers, options.Flag("--pressure"));
  const bool good = stress.Run(std::chrono::seconds(options.Number("--seconds")));
  for (std::size_t i = 0; i < kCounts; ++i)
    std::printf("%s %lu\n", kNames[i], shared->counts[i].load());
  return good ? 0 : 1;
}
