// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/signals.h"

#include <cstdio>

namespace mrscope {

StopSignals::StopSignals() {
  sigemptyset(&blocked_);
  sigaddset(&blocked_, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // What was ignored, by nohup for one, stays ignored: a blocked signal would
    // arrive all the same.
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
      sigaddset(&blocked_, signal);
    }
  }
  // Children that end while SIGCHLD is ignored leave no status to wait for.
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &plain, &previous_child_);
  pthread_sigmask(SIG_BLOCK, &blocked_, &previous_);
}

StopSignals::~StopSignals() {
  sigaction(SIGCHLD, &previous_child_, nullptr);
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

std::optional<StopSignals::Arrived> StopSignals::Wait(Nanoseconds timeout) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  const timespec limit{.tv_sec = static_cast<time_t>(seconds.count()),
                       .tv_nsec = static_cast<long>((timeout - seconds).count())};
  siginfo_t info{};
  const int number = sigtimedwait(&blocked_, &info, &limit);
  if (number <= 0 || number == SIGCHLD) return std::nullopt;
  return Arrived{.number = number, .from_terminal = info.si_code == SI_KERNEL};
}

}  // namespace mrscope
