// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/explain.h"

#include <memory>
#include <optional>
#include <string>

#include "command.h"
#include "mrscope/access.h"
#include "mrscope/report_json.h"
#include "mrscope/report_text.h"
#include "mrscope/signals.h"
#include "output.h"

namespace mr_probe {
namespace {

struct Flags {
  std::string size = "1M";
  std::string access = "local_write,remote_write,remote_read";
  std::string memlock;
  std::string json;
  std::string level;
  bool touched = false;
  bool untouched = false;
  mrscope::ExplainOptions options;
};

// Text to values; every mistake is a usage error.
mrscope::Result<mrscope::ExplainOptions> Interpret(const Flags& flags) {
  mrscope::ExplainOptions options = flags.options;
  const auto size = mrscope::ParseSize(flags.size);
  if (!size) return size.error();
  options.size = *size;
  const auto access = mrscope::ParseAccess(flags.access);
  if (!access) return access.error();
  options.access = *access;
  if (const auto kind = mrscope::FindBufferKind(options.buffer); !kind) return kind.error();
  if (!flags.memlock.empty()) {
    // 0 is no size to register, but a limit that hosts do have.
    if (flags.memlock == "0") {
      options.memlock = mrscope::Bytes{0};
    } else {
      const auto memlock = mrscope::ParseSize(flags.memlock);
      if (!memlock) return memlock.error();
      options.memlock = *memlock;
    }
  }
  if (options.count == 0) {
    return mrscope::Error{mrscope::ErrorKind::kUsage, 0, "--count must be at least 1"};
  }
  if (!flags.level.empty()) {
    const auto level = mrscope::ParseLevel(flags.level);
    if (!level) return level.error();
    options.level = *level;
  }
  if (options.level == mrscope::Level::kUser && options.keys) {
    return mrscope::Error{
        mrscope::ErrorKind::kUsage, 0,
        "--keys asks the kernel, which --level user leaves out: give one of them"};
  }
  if (flags.touched != flags.untouched) {
    options.touched = flags.touched;
    options.untouched = flags.untouched;
  }
  // A range that is not there cannot be touched.
  if (options.unmapped) options.touched = false;
  return options;
}

int Explain(const Flags& flags) {
  const auto options = Interpret(flags);
  if (!options) return Fail(options.error());
  if (options->unmapped && !options->untouched) {
    return Fail({mrscope::ErrorKind::kUsage, 0, "--unmapped memory cannot be --touched"});
  }
  auto output = Output::Open(flags.json);
  if (!output) return Fail(output.error());
  if (!options->level || options->level == mrscope::Level::kModule) WarnOfFilters();

  auto report = [&]() -> mrscope::Result<mrscope::ExplainReport> {
    const mrscope::StopSignals signals;
    Progress progress;
    return mrscope::RunExplain(
        *options,
        {.progress =
             [&](unsigned done, unsigned all) {
               progress.Show("registering " + std::to_string(done) + " of " + std::to_string(all));
             },
         .interrupted = [&]() -> std::optional<int> {
           const auto arrived = signals.Wait(mrscope::Nanoseconds{0});
           return arrived ? std::optional(arrived->number) : std::nullopt;
         }});
  }();
  if (!report) return Fail(report.error());
  const auto written = output->Write([&](std::ostream& out) { WriteJson(out, *report); },
                                     [&] { return FormatReport(*report); });
  if (!written) return Fail(written.error());
  for (const auto& one : report->cases) {
    if (!one.failure) continue;
    return Fail({mrscope::ErrorKind::kFailed, 0,
                 "registration failed with " + one.failure->error +
                     (one.failure->stage ? " in stage " + *one.failure->stage : "") + ": " +
                     one.failure->explanation});
  }
  return kDone;
}

}  // namespace

void AddExplain(CLI::App& app, Run& run) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("explain", "register buffers and show where the time goes");
  mrscope::ExplainOptions& options = flags->options;
  command->add_option("--device", options.device,
                      "RDMA device (default: first with an active port, else first)");
  command->add_option("--size", flags->size, "bytes to register, like 4K, 64M, 1G (default: 1M)");
  command->add_option("--buffer", options.buffer, "anon, thp or huge2m (default: anon)");
  command->add_flag("--touched", flags->touched, "only memory that was written before");
  command->add_flag("--untouched", flags->untouched, "only memory fresh from mmap");
  command->add_option("--count", options.count, "registrations of each case (default: 20)");
  command->add_option("--warmup", options.warmup, "registrations not counted (default: 3)");
  command->add_option("--access", flags->access,
                      "access flags separated by commas, or none\n"
                      "(default: local_write,remote_write,remote_read)");
  command->add_option("--json", flags->json, "also write JSON to this file; - is stdout, alone");
  command->add_flag("--keys", options.keys, "whole lkey and rkey in JSON: they grant access");
  command->add_option("--level", flags->level,
                      "module, bpf or user: how to look (default: the first that works)");
  const char* bring_about = "To see a failure explained";
  command->add_flag("--read-only", options.read_only, "map the buffer read-only")
      ->group(bring_about);
  command->add_flag("--unmapped", options.unmapped, "register a range that is not mapped")
      ->group(bring_about);
  command
      ->add_option("--memlock", flags->memlock,
                   "set RLIMIT_MEMLOCK of mr_probe to this size or 0, without CAP_IPC_LOCK")
      ->group(bring_about);
  command->add_flag("--no-ipc-lock", options.drop_ipc_lock, "drop CAP_IPC_LOCK")
      ->group(bring_about);
  command->footer("Example: mr_probe explain --size 64M --buffer thp --json thp.json");
  command->callback([flags, &run] { run = [flags] { return Explain(*flags); }; });
}

}  // namespace mr_probe
