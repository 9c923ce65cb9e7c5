// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What main() and the subcommands share. One subcommand is one file with one
// Add…() function, which is all main() knows about it.

#ifndef MR_PROBE_COMMAND_H_
#define MR_PROBE_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "mrscope/result.h"

namespace mr_probe {

enum ExitCode : int {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,
  kMissing = 3,
};

// Says one sentence on stderr and returns the exit code that belongs to it. An
// interrupted command dies of its signal, as a shell expects.
int Fail(const mrscope::Error& error);

// Says one sentence on stderr where a filter of the module hides records.
void WarnOfFilters();

struct Arguments {
  // What follows "--", untouched: the command to record.
  std::vector<std::string> command;
};

// Set by the chosen subcommand's callback, run by main() after parsing.
using Run = std::function<int()>;

void AddExplain(CLI::App& app, Run& run);
void AddRecord(CLI::App& app, const Arguments& arguments, Run& run);
void AddStatus(CLI::App& app, Run& run);

}  // namespace mr_probe

#endif  // MR_PROBE_COMMAND_H_
