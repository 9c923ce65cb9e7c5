// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Signals that ask to stop, taken as data instead of by a handler: an
// interrupted capture still has an instance to remove and a report to print.

#ifndef MRSCOPE_SIGNALS_H_
#define MRSCOPE_SIGNALS_H_

#include <csignal>
#include <optional>

#include "mrscope/units.h"

namespace mrscope {

// Blocks SIGINT, SIGTERM, SIGHUP (unless they are ignored) and SIGCHLD in this
// thread and in those it starts later, until it goes. Make one before any
// thread.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  struct Arrived {
    int number = 0;
    bool from_terminal = false;  // sent to the whole foreground group
  };
  // Waits at most `timeout`; SIGCHLD ends the wait without being reported.
  std::optional<Arrived> Wait(Nanoseconds timeout) const;

  // The mask from before, for a child to restore.
  const sigset_t& previous() const { return previous_; }

 private:
  sigset_t blocked_{};
  sigset_t previous_{};
  struct sigaction previous_child_ {};
};

}  // namespace mrscope

#endif  // MRSCOPE_SIGNALS_H_
