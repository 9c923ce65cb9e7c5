// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Runs a program and takes the records of its whole process tree.

#ifndef MRSCOPE_RECORD_SESSION_H_
#define MRSCOPE_RECORD_SESSION_H_

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mrscope/capture.h"
#include "mrscope/environment.h"
#include "mrscope/level.h"
#include "mrscope/process_tree.h"
#include "mrscope/record.h"
#include "mrscope/result.h"
#include "mrscope/signals.h"
#include "mrscope/units.h"

namespace mrscope {

struct RecordOptions {
  std::vector<std::string> command;
  bool stdout_to_stderr = false;  // of the command
  std::optional<Level> level;     // no value: the best there is; not kUser
  bool keys = false;
  std::optional<Bytes> buffer_per_cpu;
  // How long processes that outlive the command are waited for.
  Nanoseconds linger = std::chrono::seconds(2);
};

// How the command ended; all empty when it could not be started.
struct CommandExit {
  std::optional<int> code;
  std::optional<int> signal;
  std::string why_not_started;

  bool success() const { return code == 0; }
};

struct RecordReport {
  Environment environment;
  UsedLevel level;
  bool keys = false;
  std::vector<std::string> command;
  CommandExit exit;
  bool interrupted = false;  // a signal was passed on to the command
  Nanoseconds elapsed{0};
  Bytes capture_buffer;  // of all CPUs
  unsigned cpus = 0;
  CaptureLoss lost;
  std::vector<TreeProcess> processes;
  std::vector<pid_t> alive;           // processes that were still running at the end
  std::vector<KernelRecord> records;  // in the order of time
};

struct RecordHooks {
  // Called for each record of the tree as it comes, in another thread.
  std::function<void(const KernelRecord&)> on_record;
  // Called now and then with how many records there are.
  std::function<void(std::size_t records)> progress;
};

// A command that fails, or does not start, is part of the report. Errors are
// those of the capture. Adopts orphans: every child of this process is waited
// for.
Result<RecordReport> RunRecord(const RecordOptions& options, const StopSignals& signals,
                               const RecordHooks& hooks);

}  // namespace mrscope

#endif  // MRSCOPE_RECORD_SESSION_H_
