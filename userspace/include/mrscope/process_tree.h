// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Which operations belong to a process and its descendants. The kernel's own
// pid filter is of no use here: it drops an exiting pid before that process's
// deregistrations have run.

#ifndef MRSCOPE_PROCESS_TREE_H_
#define MRSCOPE_PROCESS_TREE_H_

#include <sys/types.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "mrscope/record.h"

namespace mrscope {

struct TreeProcess {
  pid_t pid = 0;
  pid_t parent = 0;  // a tid of the parent; 0 for the root
  std::string comm;  // of its latest record, else of the program it runs
  bool exited = false;
};

// Fed with the events of a capture in the order of time.
class ProcessTree {
 public:
  // The root is the process that writes `root_marker` to trace_marker.
  explicit ProcessTree(std::string root_marker);

  // For captures without markers.
  void AddRoot(pid_t pid);

  // True for a record of the tree: made by one of its processes, or made by
  // anyone for memory that one of them registered.
  bool Consume(const CaptureEvent& event);

  bool has_root() const { return root_ != 0; }
  // Processes that ran a program or registered memory; a fork that did neither
  // cannot be told from a thread.
  std::vector<TreeProcess> Processes() const;
  // Tasks of the tree whose end was not seen.
  std::vector<pid_t> Alive() const;

 private:
  struct Task {
    pid_t parent = 0;
    bool exited = false;
    bool is_process = false;
    std::string comm;
  };

  void OnFork(const ForkEvent& fork);
  bool OnRecord(const KernelRecord& record);

  std::string root_marker_;
  pid_t root_ = 0;
  std::map<pid_t, Task> tasks_;
  std::vector<TreeProcess> gone_;  // whose pid has since been given again
};

}  // namespace mrscope

#endif  // MRSCOPE_PROCESS_TREE_H_
