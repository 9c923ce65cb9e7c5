// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Starts a program, unmodified.

#ifndef MRSCOPE_CHILD_H_
#define MRSCOPE_CHILD_H_

#include <sys/types.h>

#include <csignal>
#include <span>
#include <string>

#include "mrscope/result.h"

namespace mrscope {

struct ChildOptions {
  bool stdout_to_stderr = false;
  // Written to `marker_fd` by the child right before it becomes the program.
  int marker_fd = -1;
  std::string marker;
  sigset_t signal_mask{};  // of the program
};

// The program's pid, once it runs. Fails with the errno of exec; nothing is
// left to wait for then.
Result<pid_t> StartChild(std::span<const std::string> argv, const ChildOptions& options);

// Orphans of the tree come to this process, to be waited for.
void AdoptOrphans();

}  // namespace mrscope

#endif  // MRSCOPE_CHILD_H_
