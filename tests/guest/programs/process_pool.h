// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What the stress programs do with their processes: start them, kill some, and
// tell those that died of what nobody sent.

#ifndef TESTS_GUEST_PROCESS_POOL_H_
#define TESTS_GUEST_PROCESS_POOL_H_

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <new>
#include <vector>

#include "device.h"

// Set by SIGTERM after StopOnSigterm(), in the processes that are started, too.
inline std::atomic<bool> stop{false};

inline void StopOnSigterm() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop = true; };
  sigaction(SIGTERM, &action, nullptr);
}

// A T in memory that all processes started from here share. It stays.
template <typename T>
T* MapShared() {
  void* memory =
      mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Die("cannot map memory");
  return new (memory) T;
}

struct ProcessSlot {
  pid_t pid = 0;  // 0: nobody
  bool killed = false;
  std::uint64_t life = 0;  // in steps, of one that is to be killed or to end
};

// Slot is a ProcessSlot, or made from one.
template <typename Slot>
class ProcessPool {
 public:
  explicit ProcessPool(std::size_t size) : slots_(size) {}

  std::vector<Slot>& slots() { return slots_; }
  std::size_t IndexOf(const Slot& slot) const {
    return static_cast<std::size_t>(&slot - slots_.data());
  }
  // No process has ended other than well, or by Kill().
  bool good() const { return good_; }

  // `run` does not return.
  template <typename Function>
  static pid_t Start(const Function& run) {
    const pid_t pid = fork();
    if (pid < 0) Die("cannot fork");
    if (pid == 0) run();
    return pid;
  }

  static void Kill(Slot& slot) {
    kill(slot.pid, SIGKILL);
    slot.killed = true;
  }

  // Whether there was somebody to reap.
  bool Reap(int flags) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, flags);
    if (pid <= 0) return pid < 0 && errno == EINTR;
    for (Slot& slot : slots_) {
      if (slot.pid != pid) continue;
      slot.pid = 0;
      if (WIFEXITED(status) ? WEXITSTATUS(status) == 0 : slot.killed) continue;
      std::fprintf(stderr, "process %d ended with status %#x\n", pid, status);
      good_ = false;
    }
    return true;
  }

  // Orphans come to a subreaper: when none is left, all files are closed.
  void ReapAll() {
    while (Reap(0)) {
    }
  }

 private:
  std::vector<Slot> slots_;
  bool good_ = true;
};

#endif  // TESTS_GUEST_PROCESS_POOL_H_
