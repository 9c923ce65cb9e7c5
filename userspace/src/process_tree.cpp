// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/process_tree.h"

#include <utility>

#include "mrscope.h"

namespace mrscope {
namespace {

// The kernel's comm of a program: its file name, at most 15 characters.
std::string CommOf(const std::string& filename) {
  const auto slash = filename.rfind('/');
  return filename.substr(slash == std::string::npos ? 0 : slash + 1).substr(0, 15);
}

}  // namespace

ProcessTree::ProcessTree(std::string root_marker) : root_marker_(std::move(root_marker)) {}

void ProcessTree::AddRoot(pid_t pid) {
  root_ = pid;
  tasks_[pid].is_process = true;
}

void ProcessTree::OnFork(const ForkEvent& fork) {
  const auto parent = tasks_.find(fork.parent);
  const auto child = tasks_.find(fork.child);
  if (child != tasks_.end()) {
    // Pids are used again; whoever had this one is gone.
    const Task& old = child->second;
    if (old.is_process) gone_.push_back({fork.child, old.parent, old.comm, true});
    tasks_.erase(child);
  }
  if (parent == tasks_.end()) return;
  Task task;
  task.parent = fork.parent;
  task.comm = parent->second.comm;
  tasks_[fork.child] = std::move(task);
}

bool ProcessTree::OnRecord(const KernelRecord& record) {
  bool ours = tasks_.contains(record.tid);
  const auto name = [&](pid_t pid, std::string_view comm) {
    const auto found = tasks_.find(pid);
    if (found == tasks_.end()) return;
    found->second.is_process = true;
    found->second.comm = comm;
    ours = true;
  };
  name(record.tgid, TextOf(record.comm));
  if (record.Has(MRSCOPE_F_OWNER)) name(record.owner_tgid, TextOf(record.owner_comm));
  return ours;
}

bool ProcessTree::Consume(const CaptureEvent& event) {
  if (const auto* record = std::get_if<KernelRecord>(&event.what)) return OnRecord(*record);
  if (const auto* fork = std::get_if<ForkEvent>(&event.what)) {
    OnFork(*fork);
  } else if (const auto* exec = std::get_if<ExecEvent>(&event.what)) {
    const auto found = tasks_.find(exec->pid);
    if (found != tasks_.end()) {
      found->second.is_process = true;
      found->second.comm = CommOf(exec->filename);
    }
  } else if (const auto* exit = std::get_if<ExitEvent>(&event.what)) {
    const auto found = tasks_.find(exit->tid);
    if (found != tasks_.end()) found->second.exited = true;
  } else if (const auto* marker = std::get_if<MarkerEvent>(&event.what)) {
    // trace_marker adds a newline where there is none.
    if (root_ == 0 && marker->text.starts_with(root_marker_)) AddRoot(marker->tid);
  }
  return false;
}

std::vector<TreeProcess> ProcessTree::Processes() const {
  std::vector<TreeProcess> processes = gone_;
  for (const auto& [pid, task] : tasks_) {
    if (task.is_process) processes.push_back({pid, task.parent, task.comm, task.exited});
  }
  return processes;
}

std::vector<pid_t> ProcessTree::Alive() const {
  std::vector<pid_t> alive;
  for (const auto& [pid, task] : tasks_) {
    if (!task.exited) alive.push_back(pid);
  }
  return alive;
}

}  // namespace mrscope
