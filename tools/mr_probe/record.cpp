// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "command.h"
#include "mrscope/record_session.h"
#include "mrscope/report_json.h"
#include "mrscope/report_text.h"
#include "mrscope/signals.h"
#include "output.h"

namespace mr_probe {
namespace {

constexpr std::size_t kDefaultRows = 40;
constexpr double kLongestLinger = 1e6;
constexpr std::uint64_t kSmallestBuffer = 4096;

struct Flags {
  std::string json;
  std::string lines;
  std::string buffer_size;
  std::string level;
  double linger_seconds = 2;
  std::size_t rows = kDefaultRows;
  bool keys = false;
};

mrscope::Result<mrscope::RecordOptions> Interpret(const Flags& flags,
                                                  const std::vector<std::string>& command) {
  mrscope::RecordOptions options;
  if (command.empty()) {
    return mrscope::Error{
        mrscope::ErrorKind::kUsage, 0,
        "record needs a command behind --, like mr_probe record -- ibv_rc_pingpong"};
  }
  options.command = command;
  options.keys = flags.keys;
  if (!flags.level.empty()) {
    const auto level = mrscope::ParseLevel(flags.level);
    if (!level) return level.error();
    if (*level == mrscope::Level::kUser) {
      return mrscope::Error{mrscope::ErrorKind::kUsage, 0,
                            "record sees programs from the kernel alone: --level module or bpf"};
    }
    options.level = *level;
  }
  // So that it is false for NaN too.
  if (!(flags.linger_seconds >= 0 && flags.linger_seconds <= kLongestLinger)) {
    return mrscope::Error{mrscope::ErrorKind::kUsage, 0, "--linger takes seconds, from 0 to 1e6"};
  }
  options.linger = mrscope::Nanoseconds(static_cast<std::int64_t>(flags.linger_seconds * 1e9));
  if (!flags.buffer_size.empty()) {
    const auto size = mrscope::ParseSize(flags.buffer_size);
    if (!size) return size.error();
    if (size->value < kSmallestBuffer) {
      return mrscope::Error{mrscope::ErrorKind::kUsage, 0, "--buffer-size must be at least 4K"};
    }
    options.buffer_per_cpu = *size;
  }
  return options;
}

int Record(const Flags& flags, const std::vector<std::string>& command) {
  auto options = Interpret(flags, command);
  if (!options) return Fail(options.error());
  auto output = Output::Open(flags.json);
  if (!output) return Fail(output.error());
  options->stdout_to_stderr = output->json_on_stdout();

  std::unique_ptr<std::ofstream> lines;
  if (!flags.lines.empty()) {
    lines = std::make_unique<std::ofstream>(flags.lines, std::ios::binary);
    if (!*lines) {
      return Fail({mrscope::ErrorKind::kFailed, 0, "cannot write " + flags.lines});
    }
  }
  if (options->level != mrscope::Level::kBpf) WarnOfFilters();
  const mrscope::StopSignals signals;
  mrscope::RecordHooks hooks;
  if (lines) {
    // Written and flushed as they come, so that they outlive even SIGKILL.
    hooks.on_record = [&](const mrscope::KernelRecord& record) {
      {
        mrscope::JsonWriter json(*lines);
        WriteOperation(json, MakeOperation(record), flags.keys);
      }
      *lines << '\n' << std::flush;
    };
  }
  const auto report = mrscope::RunRecord(*options, signals, hooks);
  if (!report) return Fail(report.error());
  const auto written = output->Write([&](std::ostream& out) { WriteJson(out, *report); },
                                     [&] { return FormatReport(*report, flags.rows); });
  if (!written) return Fail(written.error());
  if (lines && !*lines) {
    return Fail({mrscope::ErrorKind::kFailed, 0, "cannot write all records to " + flags.lines});
  }
  if (!report->exit.why_not_started.empty()) {
    return Fail({mrscope::ErrorKind::kFailed, 0, report->exit.why_not_started});
  }
  return report->exit.success() ? kDone : kFailed;
}

}  // namespace

void AddRecord(CLI::App& app, const Arguments& arguments, Run& run) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("record", "run a program and list what it registers and deregisters");
  command->add_option("--json", flags->json,
                      "also write JSON to this file; - is stdout, alone: the program's stdout then "
                      "goes to stderr");
  command->add_option("--output", flags->lines,
                      "write each record to this file as it comes, one JSON object a line");
  command->add_option("--rows", flags->rows, "rows of each list (default: 40)");
  command->add_option("--linger", flags->linger_seconds,
                      "seconds to wait for processes that outlive the program (default: 2)");
  command->add_option("--buffer-size", flags->buffer_size,
                      "trace buffer for each CPU (default: 8M, less on small hosts)");
  command->add_option("--level", flags->level,
                      "module or bpf: how to look (default: the first that works)");
  command->add_flag("--keys", flags->keys, "whole lkey and rkey in JSON: they grant access");
  command->footer(
      "The command follows --. Example: mr_probe record --json mrs.json -- ibv_rc_pingpong -d rxe0 "
      "-g 1");
  command->callback([flags, &arguments, &run] {
    run = [flags, &arguments] { return Record(*flags, arguments.command); };
  });
}

}  // namespace mr_probe
