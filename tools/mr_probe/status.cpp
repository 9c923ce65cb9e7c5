// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "mrscope/explain.h"
#include "mrscope/host_report.h"
#include "mrscope/host_status.h"
#include "mrscope/report_json.h"
#include "mrscope/report_text.h"
#include "mrscope/signals.h"
#include "output.h"

namespace mr_probe {
namespace {

struct Flags {
  std::string json;
  std::string report;
  bool test = false;
};

// One real registration, whose record must be there and whole.
mrscope::Check RunTest() {
  using mrscope::Check;
  using mrscope::CheckResult;
  constexpr const char* kName = "test registration";
  constexpr const char* kBreaks = "registrations are not seen, or not in full";
  mrscope::ExplainOptions options;
  options.size = mrscope::Bytes{64 * mrscope::kKiB.value};
  options.touched = false;
  options.count = 1;
  options.warmup = 0;
  const mrscope::StopSignals signals;
  const auto report = mrscope::RunExplain(options, {});
  if (!report) return {kName, CheckResult::kMissing, report.error().message, kBreaks, "see above"};
  const mrscope::ExplainCase& one = report->cases.front();
  if (one.failure) {
    return {kName, CheckResult::kMissing, one.failure->error, kBreaks, one.failure->explanation};
  }
  for (const auto* operations : {&one.reg, &one.dereg}) {
    const mrscope::Operation& operation = operations->front();
    const char* what = operation.is_dereg() ? "ibv_dereg_mr" : "ibv_reg_mr";
    if (!operation.kernel_total) {
      return {kName, CheckResult::kMissing, std::string(what) + " left no kernel record", kBreaks,
              "reload mrscope.ko and look at its boundaries above"};
    }
    if (operation.incomplete || operation.stages.Sum() != operation.total) {
      return {kName, CheckResult::kMissing, std::string("the record of ") + what + " is incomplete",
              kBreaks, "look at missed probes in the boundaries above"};
    }
  }
  return {kName, CheckResult::kOk,
          "64 KiB on " + one.device + " recorded in full, " +
              mrscope::FormatTime(one.reg.front().total),
          "", ""};
}

// The status, and what a few registrations on each device show, for others.
int Report(const std::string& path) {
  auto output = Output::Open(path);
  if (!output) return Fail(output.error());
  const mrscope::HostReport report = [] {
    Progress progress;
    return mrscope::CollectHostReport([&](const std::string& device, const std::string& trial) {
      progress.Show(device + ": registering " + trial);
    });
  }();
  const auto written = output->Write([&](std::ostream& out) { WriteJson(out, report); },
                                     [&] { return FormatReport(report.status, nullptr); });
  if (!written) return Fail(written.error());
  return report.status.observable() ? kDone : kMissing;
}

int Status(const Flags& flags) {
  if (!flags.report.empty()) return Report(flags.report);
  auto output = Output::Open(flags.json);
  if (!output) return Fail(output.error());
  const mrscope::HostStatus status = mrscope::CollectHostStatus();
  std::vector<mrscope::Check> tests;
  if (flags.test) tests.push_back(RunTest());
  const mrscope::Check* test = tests.empty() ? nullptr : tests.data();
  const auto written = output->Write([&](std::ostream& out) { WriteJson(out, status, test); },
                                     [&] { return FormatReport(status, test); });
  if (!written) return Fail(written.error());
  const bool test_ok = test == nullptr || test->result == mrscope::CheckResult::kOk;
  return status.observable() && test_ok ? kDone : kMissing;
}

}  // namespace

void AddStatus(CLI::App& app, Run& run) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("status", "say what is observable on this host, and what is missing");
  // Without a value it means stdout.
  command
      ->add_option("--json", flags->json, "write JSON to this file; - or nothing is stdout, alone")
      ->expected(0, 1)
      ->default_str("-");
  command->add_flag("--test", flags->test, "make one registration and check its record");
  command
      ->add_option("--report", flags->report,
                   "make a few registrations on each device and write what they showed,\n"
                   "without keys and addresses, to this file, to be sent to others")
      ->excludes("--json")
      ->excludes("--test");
  command->footer("Example: mr_probe status --test");
  command->callback([flags, &run] { run = [flags] { return Status(*flags); }; });
}

}  // namespace mr_probe
