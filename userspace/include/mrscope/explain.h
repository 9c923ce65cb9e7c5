// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The experiment behind mr_probe explain: registers fresh buffers, and brings
// what the caller measured and what the kernel recorded together.

#ifndef MRSCOPE_EXPLAIN_H_
#define MRSCOPE_EXPLAIN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mrscope/buffer.h"
#include "mrscope/capture.h"
#include "mrscope/diagnosis.h"
#include "mrscope/environment.h"
#include "mrscope/level.h"
#include "mrscope/operation.h"
#include "mrscope/result.h"
#include "mrscope/units.h"

namespace mrscope {

struct ExplainOptions {
  std::string device;  // "": found by itself
  Bytes size = kMiB;
  std::string buffer = "anon";
  bool untouched = true;
  bool touched = true;
  unsigned count = 20;
  unsigned warmup = 3;         // not counted
  std::uint32_t access = 0x7;  // local_write, remote_write, remote_read
  bool read_only = false;
  bool unmapped = false;
  std::optional<Bytes> memlock;  // sets RLIMIT_MEMLOCK and drops CAP_IPC_LOCK
  bool drop_ipc_lock = false;
  bool keys = false;
  std::optional<Level> level;  // no value: the best there is
};

struct ExplainCase {
  std::string buffer;
  bool touched = false;
  Bytes size;
  std::string device;
  std::uint32_t access = 0;
  std::optional<Backing> backing;  // as the last registration left it
  std::vector<Operation> reg;
  std::vector<Operation> dereg;
  std::optional<Failure> failure;
  // Of the last MR, deregistered since.
  std::optional<std::uint32_t> last_lkey, last_rkey;
};

struct ExplainReport {
  Environment environment;
  UsedLevel level;
  bool keys = false;
  unsigned count = 0;
  unsigned warmup = 0;
  std::optional<Bytes> capture_buffer;  // of all CPUs
  unsigned cpus = 0;
  CaptureLoss lost;
  std::vector<ExplainCase> cases;

  bool failed() const;
};

struct ExplainHooks {
  // Called after each registration with how many are done, and of how many.
  std::function<void(unsigned done, unsigned all)> progress;
  // Asked between registrations; a signal number stops the experiment.
  std::function<std::optional<int>()> interrupted;
};

// A registration that fails is part of the report, not an error. Changes the
// limits of this process where the options ask for it.
Result<ExplainReport> RunExplain(const ExplainOptions& options, const ExplainHooks& hooks);

}  // namespace mrscope

#endif  // MRSCOPE_EXPLAIN_H_
