// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/report_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <set>
#include <vector>

#include "mrscope/access.h"
#include "mrscope/file.h"
#include "mrscope/narrative.h"
#include "mrscope/statistics.h"

namespace mrscope {
namespace {

constexpr std::size_t kTextWidth = 96;

using Text = std::string;

template <typename... Args>
void Line(Text& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  out += '\n';
}

// Breaks `text` at spaces; later lines are indented by two more.
void Wrapped(Text& out, std::string_view text) {
  std::string line = "  - ";
  std::size_t used = line.size();
  for (const std::string_view word : Split(text, ' ')) {
    if (used + word.size() > kTextWidth) {
      out += line;
      out += '\n';
      line = "    ";
      used = line.size();
    } else if (used > 4) {
      line += ' ';
      ++used;
    }
    line += word;
    used += word.size();
  }
  out += line;
  out += '\n';
}

std::string NumberOr(std::optional<std::uint64_t> number) {
  return number ? std::to_string(*number) : "unknown";
}

std::string CountOr(std::optional<std::uint64_t> number, std::string_view noun) {
  return number ? FormatCount(*number, noun) : fmt::format("{} unknown", noun);
}

std::string MemlockText(const Environment& environment) {
  if (environment.memlock_unlimited) return "unlimited";
  return environment.memlock ? FormatBytes(*environment.memlock) : "unknown";
}

void HostLine(Text& out, const Environment& environment) {
  Line(out, "host: Linux {} {}, {} CPUs{}, page {}, THP {}, IOMMU {}, MEMLOCK {}{}",
       environment.kernel, environment.machine, NumberOr(environment.cpus),
       environment.hypervisor == true ? " (virtual)" : "", FormatBytes(environment.page_size),
       environment.thp, environment.iommu, MemlockText(environment),
       environment.ipc_lock == true ? " (CAP_IPC_LOCK: no limit)" : "");
  Line(out, "      libibverbs {}, mr_probe {}, mrscope.ko {}, clock {}", environment.libibverbs,
       environment.mrscope, environment.module_version.value_or("not seen"), environment.clock);
}

void LevelLine(Text& out, const UsedLevel& used) {
  static constexpr std::string_view kTexts[] = {"by mrscope.ko",
                                                "by BPF programs (some stages are not told apart)",
                                                "the caller's time alone"};
  if (used.level == Level::kModule) return;
  Line(out, "level {}: {}", LevelName(used.level), kTexts[static_cast<std::size_t>(used.level)]);
  if (!used.reason.empty()) Wrapped(out, "no better one: " + used.reason);
}

void LossLine(Text& out, std::optional<Bytes> buffer, unsigned cpus, const CaptureLoss& lost) {
  if (!buffer) return;
  Line(out, "capture: trace buffer {} on {} CPUs; lost {} (buffer {}, module {})",
       FormatBytes(*buffer), cpus, lost.total(), lost.buffer, NumberOr(lost.module));
  if (lost.total() != 0) {
    Line(out, "         WARNING: the list is not complete; a larger --buffer-size loses less");
  }
}

// What stands in place of a time that is not there.
std::string NoTime(const Operation* typical, std::size_t stage) {
  if (typical != nullptr) {
    if (const auto carrier = typical->stages.Carrier(stage)) {
      return fmt::format("merged with {}", typical->stages.names()[*carrier]);
    }
  }
  return "not observed";
}

void StageTable(Text& out, std::string_view title, const std::vector<Operation>& operations) {
  const Operation* typical = Typical(operations);
  if (typical == nullptr) return;
  const Summary summary = Summarize(operations);
  const std::vector<double> shares = Shares(summary);
  Line(out, "  {:<16}{:>12}{:>9}{:>12}{:>12}", title, "p50", "share", "p99", "max");
  // Without the kernel's record there is nothing to tell apart.
  const std::size_t rows = typical->kernel_total ? typical->stages.size() : 0;
  for (std::size_t stage = 0; stage < rows; ++stage) {
    const auto name = typical->stages.names()[stage];
    const auto& times = summary.stages[stage];
    if (times) {
      Line(out, "    {:<14}{:>12}{:>7.1f} %{:>12}{:>12}", name, FormatTime(times->p50),
           shares[stage], FormatTime(times->p99), FormatTime(times->max));
    } else {
      // "·" is one column wide but two bytes long: no width for it.
      Line(out, "    {:<14}           ·  {}", name, NoTime(typical, stage));
    }
  }
  Line(out, "    {:<14}{:>12}{:>7.1f} %{:>12}{:>12}", "total", FormatTime(summary.total->p50),
       std::accumulate(shares.begin(), shares.end(), 0.0), FormatTime(summary.total->p99),
       FormatTime(summary.total->max));
}

void ProbeLine(Text& out, const Operation& typical) {
  if (!typical.probe_cost) return;
  const double share = typical.total.count() > 0
                           ? 100 * static_cast<double>(typical.probe_cost->count()) /
                                 static_cast<double>(typical.total.count())
                           : 0;
  Line(out,
       "    probes cost {} of the total ({:.1f} %), calibrated, not subtracted; context "
       "switches {} voluntary, {} involuntary",
       FormatTime(*typical.probe_cost), share, NumberOr(typical.nvcsw), NumberOr(typical.nivcsw));
}

std::string BackingText(const ExplainCase& one) {
  if (!one.backing) return "backing unknown";
  const Backing& backing = *one.backing;
  if (backing.page_size.value >= kMiB.value) {
    return fmt::format("backed by hugetlb pages of {}", FormatBytes(backing.page_size));
  }
  if (backing.thp.value != 0) {
    return fmt::format("backed by transparent huge pages for {} of {}", FormatBytes(backing.thp),
                       FormatBytes(backing.resident));
  }
  return fmt::format("backed by pages of {}", FormatBytes(backing.page_size));
}

void KeyLine(Text& out, const ExplainCase& one) {
  if (!one.last_lkey || !one.last_rkey) return;
  Line(out,
       "    lkey index {:#x} variant {:#04x}, rkey index {:#x} variant {:#04x} (of the last MR, "
       "deregistered since)",
       *one.last_lkey >> 8, *one.last_lkey & 0xff, *one.last_rkey >> 8, *one.last_rkey & 0xff);
}

std::size_t CountJoined(const std::vector<Operation>& operations, JoinState state) {
  return static_cast<std::size_t>(
      std::count_if(operations.begin(), operations.end(),
                    [&](const Operation& operation) { return operation.join == state; }));
}

void JoinNotes(Text& out, const ExplainCase& one) {
  struct Note {
    JoinState state;
    std::string_view text;
  };
  static constexpr Note kNotes[] = {
      {JoinState::kNoRecord,
       "have no kernel record, so their time is not split (mr_probe status may say why)"},
      {JoinState::kAmbiguous, "fit several kernel records and were not joined"},
      {JoinState::kKeyMismatch, "fit a kernel record with another lkey and were not joined"},
      {JoinState::kByTime, "were joined by thread and time alone: the kernel saw no address"},
  };
  for (const Note& note : kNotes) {
    const std::size_t count = CountJoined(one.reg, note.state) + CountJoined(one.dereg, note.state);
    if (count != 0) Line(out, "    note: {} operations {}", count, note.text);
  }
  const auto incomplete = std::count_if(one.reg.begin(), one.reg.end(),
                                        [](const auto& operation) { return operation.incomplete; });
  if (incomplete != 0) {
    Line(out, "    note: {} registrations are incomplete: a probe was missed meanwhile",
         incomplete);
  }
}

void FailureLines(Text& out, const ExplainCase& one) {
  if (!one.failure) return;
  Line(out, "  FAILED with {} in stage {}", one.failure->error,
       one.failure->stage.value_or("unknown (not observed)"));
  Wrapped(out, one.failure->explanation);
  const auto failed = std::find_if(one.reg.begin(), one.reg.end(),
                                   [](const Operation& operation) { return operation.failed(); });
  if (failed == one.reg.end()) return;
  Line(out, "  {:<16}{:>12}", "stage", "time");
  for (std::size_t stage = 0; stage < failed->stages.size(); ++stage) {
    const auto time = failed->stages.Get(stage);
    if (!time) {
      Line(out, "    {:<14}           ·  {}", failed->stages.names()[stage],
           NoTime(&*failed, stage));
    } else if (time->count() != 0) {
      Line(out, "    {:<14}{:>12}", failed->stages.names()[stage], FormatTime(*time));
    }
  }
  Line(out, "    {:<14}{:>12}", "total", FormatTime(failed->total));
}

// `said` holds the sentences of earlier cases, which need not be repeated.
void CaseLines(Text& out, const ExplainCase& one, bool user_only, std::set<std::string>& said) {
  Line(out, "{}, {}: {} on {}, access {}", one.buffer, one.touched ? "touched" : "untouched",
       FormatBytes(one.size), one.device, FormatAccess(one.access));
  FailureLines(out, one);
  if (const Operation* typical = Typical(one.reg)) {
    StageTable(out, "ibv_reg_mr", one.reg);
    if (!user_only) {
      Line(out, "    {}, {}, {}, {}, {}, {}", CountOr(typical->pages, "page"),
           CountOr(typical->faults_minor, "minor fault"),
           CountOr(typical->faults_major, "major fault"),
           CountOr(typical->pin_batches, "pin batch"),
           CountOr(typical->sg_entries, "scatter entry"),
           CountOr(typical->dma_entries, "DMA entry"));
    }
    Line(out, "    translation page {}; {}",
         typical->page_size ? FormatBytes(Bytes{*typical->page_size}) : "unknown",
         BackingText(one));
    KeyLine(out, one);
    ProbeLine(out, *typical);
  }
  if (const Operation* typical = Typical(one.dereg)) {
    StageTable(out, "ibv_dereg_mr", one.dereg);
    ProbeLine(out, *typical);
  }
  if (!user_only) JoinNotes(out, one);
  for (const std::string& sentence : Narrate(one)) {
    if (said.insert(sentence).second) Wrapped(out, sentence);
  }
}

// Microseconds in a narrow column; "·" where there is none.
std::string Cell(std::optional<Nanoseconds> time) {
  if (!time) return fmt::format("{:>10}·", "");
  return fmt::format("{:>11.2f}", static_cast<double>(time->count()) / 1e3);
}

// Stages that took time in any of the operations: the others need no column.
std::vector<std::size_t> UsedStages(const std::vector<Operation>& operations) {
  std::vector<std::size_t> used;
  if (operations.empty()) return used;
  for (std::size_t stage = 0; stage < operations.front().stages.size(); ++stage) {
    const bool any = std::any_of(operations.begin(), operations.end(), [&](const auto& operation) {
      return operation.stages.Get(stage).value_or(Nanoseconds{0}).count() != 0;
    });
    if (any) used.push_back(stage);
  }
  return used;
}

std::string TaskText(const Operation& operation) {
  if (!operation.task) return "unknown";
  return fmt::format("{}/{} {}", operation.task->pid, operation.task->tid, operation.task->comm);
}

void OperationRow(Text& out, const Operation& operation, const std::vector<std::size_t>& stages) {
  std::string row = fmt::format(
      "  {:<28}{:>10} {}", TaskText(operation),
      operation.length ? FormatBytes(Bytes{*operation.length}) : "unknown", Cell(operation.total));
  for (const std::size_t stage : stages) row += Cell(operation.stages.Get(stage));
  row += fmt::format("  {}", operation.device);
  if (!operation.is_dereg()) {
    row +=
        fmt::format(" {}", operation.access ? FormatAccess(*operation.access) : "access unknown");
    if (operation.op != Op::kReg) row += fmt::format(" {}", OpName(operation.op));
    if (operation.purpose == "driver") row += " (the provider's own)";
  } else {
    row += fmt::format(" by {}", operation.entry);
    if (operation.owner && operation.task && operation.owner->pid != operation.task->pid) {
      row += fmt::format(", registered by {} {}", operation.owner->pid, operation.owner->comm);
    }
  }
  if (operation.nested) row += " nested";
  if (operation.incomplete) row += " INCOMPLETE";
  if (operation.error) row += fmt::format(" {}", ErrnoName(*operation.error));
  Line(out, "{}", row);
}

void OperationList(Text& out, std::string_view title, const std::vector<Operation>& operations,
                   std::size_t rows) {
  Line(out, "");
  Line(out, "{} ({}), times in us", title, operations.size());
  if (operations.empty()) return;
  const auto stages = UsedStages(operations);
  std::string head = fmt::format("  {:<28}{:>10} {:>11}", "pid/tid comm", "length", "total");
  for (const std::size_t stage : stages) {
    head += fmt::format("{:>11}", operations.front().stages.names()[stage]);
  }
  Line(out, "{}  device", head);
  std::size_t shown = 0;
  std::size_t hidden = 0;
  for (const Operation& operation : operations) {
    if (shown >= rows && !operation.failed()) {
      ++hidden;
      continue;
    }
    OperationRow(out, operation, stages);
    ++shown;
  }
  if (hidden != 0) Line(out, "  … and {} more (--rows N lists more, --json all)", hidden);
}

std::string ExitText(const RecordReport& report) {
  if (!report.exit.why_not_started.empty()) return report.exit.why_not_started;
  if (report.exit.signal) {
    return fmt::format("{} was killed by {}", report.command.front(),
                       sigdescr_np(*report.exit.signal) != nullptr
                           ? fmt::format("SIG{}", sigabbrev_np(*report.exit.signal))
                           : std::to_string(*report.exit.signal));
  }
  return fmt::format("{} exited with {}", report.command.front(), report.exit.code.value_or(-1));
}

}  // namespace

std::string FormatReport(const ExplainReport& report) {
  Text out;
  Line(out, "Where the time of ibv_reg_mr() goes: {} registrations each, after {} to warm up",
       report.count, report.warmup);
  HostLine(out, report.environment);
  LossLine(out, report.capture_buffer, report.cpus, report.lost);
  LevelLine(out, report.level);
  std::set<std::string> said;
  for (const ExplainCase& one : report.cases) {
    Line(out, "");
    CaseLines(out, one, report.level.level == Level::kUser, said);
  }
  return out;
}

std::string FormatReport(const RecordReport& report, std::size_t rows) {
  Text out;
  std::vector<Operation> reg;
  std::vector<Operation> dereg;
  for (const KernelRecord& record : report.records) {
    (record.is_dereg() ? dereg : reg).push_back(MakeOperation(record));
  }
  Line(out, "mr_probe record: {} ({}), {}", fmt::join(report.command, " "), ExitText(report),
       FormatTime(report.elapsed));
  HostLine(out, report.environment);
  LossLine(out, report.capture_buffer, report.cpus, report.lost);
  LevelLine(out, report.level);
  OperationList(out, "registrations", reg, rows);
  for (const Operation& operation : reg) {
    if (!operation.failed()) continue;
    const Failure failure = Diagnose(operation, {});
    Wrapped(out, fmt::format("{} in stage {}: {}", failure.error, failure.stage.value_or("unknown"),
                             failure.explanation));
  }
  OperationList(out, "deregistrations", dereg, rows);
  if (!report.alive.empty()) {
    Line(out, "");
    Line(out, "still running, what they register and deregister from now on is not listed: {}",
         fmt::join(report.alive, ", "));
  }
  return out;
}

std::string FormatReport(const HostStatus& status, const Check* test) {
  Text out;
  HostLine(out, status.environment);
  Line(out, "");
  std::vector<Check> checks = status.checks;
  if (test != nullptr) checks.push_back(*test);
  for (const Check& check : checks) {
    const char* mark = check.result == CheckResult::kOk        ? "ok     "
                       : check.result == CheckResult::kReduced ? "reduced"
                                                               : "MISSING";
    Line(out, "{}  {:<22} {}", mark, check.name, check.detail);
    if (check.result == CheckResult::kOk) continue;
    Line(out, "           without it: {}", check.breaks);
    Line(out, "           remedy: {}", check.remedy);
  }
  if (status.module && status.module->cost_entry) {
    Line(out, "");
    Line(out, "calibrated cost: a probe at an entry {}, with the return {}, a record {}",
         FormatTime(*status.module->cost_entry),
         FormatTime(status.module->cost_pair.value_or(Nanoseconds{0})),
         FormatTime(status.module->cost_record.value_or(Nanoseconds{0})));
  }
  return out;
}

}  // namespace mrscope
