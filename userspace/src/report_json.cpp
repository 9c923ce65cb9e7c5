// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/report_json.h"

#include <csignal>
#include <cstring>

#include "mrscope/access.h"
#include "mrscope/file.h"

namespace mrscope {
namespace {

void WriteMerged(JsonWriter& json, const StageTimes& stages) {
  json.Key("merged");
  json.BeginArray();
  for (const auto& group : stages.MergedGroups()) {
    json.BeginArray();
    for (const std::size_t stage : group) json.Value(stages.names()[stage]);
    json.EndArray();
  }
  json.EndArray();
}

void WriteStages(JsonWriter& json, const StageTimes& stages) {
  json.Key("stages_ns");
  json.BeginObject();
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    json.Member(stages.names()[stage], stages.Get(stage));
  }
  json.EndObject();
  WriteMerged(json, stages);
}

// The low 8 bits are the variant, which makes the key a capability.
void WriteKey(JsonWriter& json, std::string_view name, std::optional<std::uint32_t> key,
              bool whole) {
  json.Hex(std::string(name) + "_index",
           key ? std::optional<std::uint64_t>(*key >> 8) : std::nullopt);
  json.Hex(name, key && whole ? std::optional<std::uint64_t>(*key) : std::nullopt);
}

void WriteDistribution(JsonWriter& json, std::string_view key,
                       const std::optional<Distribution>& distribution) {
  json.Key(key);
  if (!distribution) {
    json.Null();
    return;
  }
  json.BeginObject();
  json.Member("min", distribution->min);
  json.Member("p50", distribution->p50);
  json.Member("p99", distribution->p99);
  json.Member("max", distribution->max);
  json.EndObject();
}

void WriteLevel(JsonWriter& json, const UsedLevel& used) {
  json.Member("level", LevelName(used.level));
  json.Member("level_reason", used.reason.empty() ? std::nullopt : std::optional(used.reason));
}

void WriteLoss(JsonWriter& json, const CaptureLoss& lost) {
  json.Member("lost", lost.total());
  json.Key("lost_detail");
  json.BeginObject();
  json.Member("buffer", lost.buffer);
  json.Member("module", lost.module);
  json.EndObject();
}

void WriteOperations(JsonWriter& json, std::string_view key, const std::vector<Operation>& all,
                     bool keys) {
  json.Key(key);
  json.BeginArray();
  for (const Operation& operation : all) {
    json.NewLine();
    WriteOperation(json, operation, keys);
  }
  json.EndArray();
}

void WriteCase(JsonWriter& json, const ExplainCase& one, const ExplainReport& report) {
  json.BeginObject();
  json.Member("buffer", one.buffer);
  json.Member("touched", one.touched);
  json.Member("size_bytes", one.size);
  json.Member("device", one.device);
  json.Member("access", AccessNames(one.access));
  json.Member("count", report.count);
  json.Member("warmup", report.warmup);
  json.Key("backing");
  if (one.backing) {
    json.BeginObject();
    json.Member("page_size", one.backing->page_size);
    json.Member("resident_bytes", one.backing->resident);
    json.Member("thp_bytes", one.backing->thp);
    json.EndObject();
  } else {
    json.Null();
  }
  json.Key("failure");
  if (one.failure) {
    json.BeginObject();
    json.Member("errno", one.failure->error);
    json.Member("stage", one.failure->stage);
    json.Member("explanation", one.failure->explanation);
    json.EndObject();
  } else {
    json.Null();
  }
  WriteOperations(json, "reg", one.reg, report.keys);
  WriteOperations(json, "dereg", one.dereg, report.keys);
  json.NewLine();
  json.Key("summary");
  json.BeginObject();
  json.Key("reg");
  WriteSummary(json, Summarize(one.reg), RegStageNames());
  json.Key("dereg");
  WriteSummary(json, Summarize(one.dereg), DeregStageNames());
  json.EndObject();
  json.EndObject();
}

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : std::to_string(signal);
}

void WriteExit(JsonWriter& json, const CommandExit& exit) {
  json.Key("exit");
  json.BeginObject();
  json.Member("started", exit.why_not_started.empty());
  json.Member("code", exit.code);
  json.Key("signal");
  if (exit.signal) {
    json.Value(SignalName(*exit.signal));
  } else {
    json.Null();
  }
  json.Key("error");
  if (exit.why_not_started.empty()) {
    json.Null();
  } else {
    json.Value(exit.why_not_started);
  }
  json.EndObject();
}

void WriteModule(JsonWriter& json, const std::optional<ModuleStatus>& module) {
  json.Key("module");
  if (!module) {
    json.Null();
    return;
  }
  json.BeginObject();
  json.Member("version", module->version);
  json.Member("enabled", module->enabled);
  json.Member("deep", module->deep);
  json.Member("keys", module->keys);
  json.Member("clock", module->clock);
  json.Member("records", module->records);
  json.Member("lost", module->lost);
  json.Member("contexts_in_flight", module->in_flight);
  json.Member("contexts_capacity", module->contexts);
  json.Member("filter_tgid", module->filter_tgid);
  json.Member("filter_min_ns", module->filter_min);
  json.Member("filter_device", module->filter_device);
  json.Key("probe_cost_ns");
  json.BeginObject();
  json.Member("entry", module->cost_entry);
  json.Member("pair", module->cost_pair);
  json.Member("record", module->cost_record);
  json.EndObject();
  json.Key("devices");
  json.BeginArray();
  for (const DeviceStatus& device : module->devices) {
    json.BeginObject();
    json.Member("name", device.name);
    json.Member("driver", device.driver);
    json.EndObject();
  }
  json.EndArray();
  json.Key("boundaries");
  json.BeginArray();
  for (const BoundaryStatus& boundary : module->boundaries) {
    json.NewLine();
    json.BeginObject();
    json.Member("name", boundary.name);
    json.Member("armed", boundary.armed);
    json.Key("symbol");
    if (boundary.symbol == "-") {
      json.Null();
    } else {
      json.Value(boundary.symbol);
    }
    json.Member("hits", boundary.hits);
    json.Member("missed", boundary.missed);
    json.Member("reason", boundary.reason);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

// What a trial showed of its registrations or deregistrations: which stages are
// known there, and how long they took.
void WriteShown(JsonWriter& json, std::string_view key, const std::vector<Operation>& operations,
                std::span<const std::string_view> stage_names) {
  json.Key(key);
  if (operations.empty()) {
    json.Null();
    return;
  }
  const Operation& last = operations.back();
  json.BeginObject();
  json.Member("recorded", last.kernel_total.has_value());
  json.Member("incomplete", last.incomplete);
  json.Member("pages", last.pages);
  json.Member("page_size", last.page_size);
  json.Member("pin_batches", last.pin_batches);
  json.Member("sg_entries", last.sg_entries);
  json.Member("dma_entries", last.dma_entries);
  json.Member("entry", last.entry);
  WriteMerged(json, last.stages);
  json.Key("summary");
  WriteSummary(json, Summarize(operations), stage_names);
  json.EndObject();
}

void WriteTrial(JsonWriter& json, const Trial& trial) {
  json.BeginObject();
  json.Member("name", trial.name);
  json.Member("error", trial.error.empty() ? std::nullopt : std::optional(trial.error));
  json.Key("cases");
  json.BeginArray();
  for (const ExplainCase& one : trial.cases) {
    json.NewLine();
    json.BeginObject();
    json.Member("touched", one.touched);
    json.Member("size_bytes", one.size);
    json.Member("access", AccessNames(one.access));
    json.Member("errno", one.failure ? std::optional(one.failure->error) : std::nullopt);
    json.Member("failed_stage", one.failure ? one.failure->stage : std::nullopt);
    WriteShown(json, "reg", one.reg, RegStageNames());
    WriteShown(json, "dereg", one.dereg, DeregStageNames());
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

std::string_view CheckResultName(CheckResult result) {
  switch (result) {
    case CheckResult::kOk:
      return "ok";
    case CheckResult::kReduced:
      return "reduced";
    case CheckResult::kMissing:
      return "missing";
  }
  return "missing";
}

void WriteCheck(JsonWriter& json, const Check& check) {
  json.BeginObject();
  json.Member("name", check.name);
  json.Member("result", CheckResultName(check.result));
  json.Member("detail", check.detail);
  const bool ok = check.result == CheckResult::kOk;
  json.Member("breaks", ok ? std::nullopt : std::optional(check.breaks));
  json.Member("remedy", ok ? std::nullopt : std::optional(check.remedy));
  json.EndObject();
}

void WriteChecks(JsonWriter& json, const std::vector<Check>& checks) {
  json.Key("checks");
  json.BeginArray();
  for (const Check& check : checks) {
    json.NewLine();
    WriteCheck(json, check);
  }
  json.EndArray();
}

}  // namespace

void WriteOperation(JsonWriter& json, const Operation& operation, bool keys) {
  json.BeginObject();
  json.Member("op", OpName(operation.op));
  json.Member("total_ns", operation.total);
  json.Member("kernel_total_ns", operation.kernel_total);
  json.Member("probe_cost_ns", operation.probe_cost);
  WriteStages(json, operation.stages);
  json.Member("incomplete", operation.incomplete);
  json.Member("join", JoinName(operation.join));
  json.Key("errno");
  if (operation.error) {
    json.Value(ErrnoName(*operation.error));
  } else {
    json.Null();
  }
  const bool dereg = operation.is_dereg();
  if (!dereg) {
    json.Key("failed_stage");
    if (operation.failed_stage) {
      json.Value(operation.stages.names()[*operation.failed_stage]);
    } else {
      json.Null();
    }
    json.Member("faults_minor", operation.faults_minor);
    json.Member("faults_major", operation.faults_major);
  }
  json.Member("pages", operation.pages);
  if (!dereg) {
    json.Member("page_size", operation.page_size);
    json.Member("pin_batches", operation.pin_batches);
  }
  json.Member("sg_entries", operation.sg_entries);
  if (!dereg) {
    json.Member("dma_entries", operation.dma_entries);
    json.Member("slow_ns", operation.slow_time);
    json.Member("slow_calls", operation.slow_calls);
    json.Member("migrations", operation.migrations);
  }
  json.Member("nvcsw", operation.nvcsw);
  json.Member("nivcsw", operation.nivcsw);
  const bool whole = keys && operation.whole_keys;
  WriteKey(json, "lkey", operation.lkey, whole);
  WriteKey(json, "rkey", operation.rkey, whole);
  if (!dereg) {
    json.Key("access");
    if (operation.access) {
      json.Value(AccessNames(*operation.access));
    } else {
      json.Null();
    }
  }
  json.Hex("addr", operation.addr);
  json.Member("length", operation.length);
  json.Hex("iova", operation.iova);
  const auto& task = operation.task;
  json.Member("pid", task ? std::optional(task->pid) : std::nullopt);
  json.Member("tid", task ? std::optional(task->tid) : std::nullopt);
  json.Member("comm", task ? std::optional(task->comm) : std::nullopt);
  if (dereg) {
    json.Key("task");
    if (task) {
      json.BeginObject();
      json.Member("pid", task->pid);
      json.Member("tid", task->tid);
      json.Member("comm", task->comm);
      json.EndObject();
    } else {
      json.Null();
    }
    json.Key("owner");
    if (operation.owner) {
      json.BeginObject();
      json.Member("pid", operation.owner->pid);
      json.Member("comm", operation.owner->comm);
      json.EndObject();
    } else {
      json.Null();
    }
  }
  const auto word = [&](std::string_view key, const std::string& text) {
    json.Member(key, text.empty() ? std::nullopt : std::optional(text));
  };
  word("device", operation.device);
  word("entry", operation.entry);
  if (!dereg) word("purpose", operation.purpose);
  json.Member("nested", operation.nested);
  json.Member("start_ns", operation.start);
  json.Member("seq", operation.seq);
  json.EndObject();
}

void WriteEnvironment(JsonWriter& json, const Environment& environment) {
  json.BeginObject();
  json.Member("date", environment.date);
  json.Member("kernel", environment.kernel);
  json.Member("machine", environment.machine);
  json.Member("cpu_model", environment.cpu_model);
  json.Member("cpus", environment.cpus);
  json.Member("hypervisor", environment.hypervisor);
  json.Member("numa_nodes", environment.numa_nodes);
  json.Member("page_size", environment.page_size);
  json.Member("memory_bytes", environment.memory);
  json.Member("thp", environment.thp);
  json.Member("thp_defrag", environment.thp_defrag);
  json.Key("hugepages_2m");
  if (environment.huge_2m) {
    json.BeginObject();
    json.Member("total", environment.huge_2m->total);
    json.Member("free", environment.huge_2m->free);
    json.EndObject();
  } else {
    json.Null();
  }
  json.Key("memlock");
  if (environment.memlock_unlimited) {
    json.Value("unlimited");
  } else {
    json.Value(environment.memlock);
  }
  json.Member("cap_ipc_lock", environment.ipc_lock);
  json.Member("iommu", environment.iommu);
  json.Member("iommu_cmdline", environment.iommu_cmdline);
  json.Member("libibverbs", environment.libibverbs);
  json.Member("mrscope", environment.mrscope);
  json.Member("module", environment.module_version);
  json.Member("clock", environment.clock);
  json.Member("module_clock", environment.module_clock);
  json.EndObject();
}

void WriteSummary(JsonWriter& json, const Summary& summary,
                  std::span<const std::string_view> stage_names) {
  json.BeginObject();
  WriteDistribution(json, "total_ns", summary.total);
  json.Key("stages_ns");
  json.BeginObject();
  for (std::size_t stage = 0; stage < stage_names.size(); ++stage) {
    WriteDistribution(json, stage_names[stage],
                      stage < summary.stages.size() ? summary.stages[stage] : std::nullopt);
  }
  json.EndObject();
  json.EndObject();
}

void WriteJson(std::ostream& out, const ExplainReport& report) {
  JsonWriter json(out);
  json.BeginObject();
  json.Member("schema", "mrscope.explain/1");
  json.NewLine();
  json.Key("environment");
  WriteEnvironment(json, report.environment);
  json.NewLine();
  WriteLevel(json, report.level);
  WriteLoss(json, report.lost);
  json.Member("capture_buffer_bytes", report.capture_buffer);
  json.NewLine();
  json.Key("cases");
  json.BeginArray();
  for (const ExplainCase& one : report.cases) {
    json.NewLine();
    WriteCase(json, one, report);
  }
  json.EndArray();
  json.EndObject();
  json.Flush();
  out << '\n';
}

void WriteJson(std::ostream& out, const RecordReport& report) {
  JsonWriter json(out);
  json.BeginObject();
  json.Member("schema", "mrscope.record/1");
  json.NewLine();
  json.Key("environment");
  WriteEnvironment(json, report.environment);
  json.NewLine();
  WriteLevel(json, report.level);
  json.Member("command", report.command);
  WriteExit(json, report.exit);
  json.Member("interrupted", report.interrupted);
  json.Member("elapsed_ns", report.elapsed);
  WriteLoss(json, report.lost);
  json.Member("capture_buffer_bytes", report.capture_buffer);
  json.NewLine();
  json.Key("processes");
  json.BeginArray();
  for (const TreeProcess& process : report.processes) {
    json.NewLine();
    json.BeginObject();
    json.Member("pid", process.pid);
    json.Member("parent", process.parent != 0 ? std::optional(process.parent) : std::nullopt);
    json.Member("comm", process.comm);
    json.Member("alive", !process.exited);
    json.EndObject();
  }
  json.EndArray();
  for (const bool dereg : {false, true}) {
    json.NewLine();
    json.Key(dereg ? "dereg" : "reg");
    json.BeginArray();
    for (const KernelRecord& record : report.records) {
      if (record.is_dereg() != dereg) continue;
      json.NewLine();
      WriteOperation(json, MakeOperation(record), report.keys);
    }
    json.EndArray();
  }
  json.EndObject();
  json.Flush();
  out << '\n';
}

void WriteJson(std::ostream& out, const HostStatus& status, const Check* test) {
  JsonWriter json(out);
  json.BeginObject();
  json.Member("schema", "mrscope.status/1");
  json.NewLine();
  json.Key("environment");
  WriteEnvironment(json, status.environment);
  json.NewLine();
  const bool test_ok = test == nullptr || test->result == CheckResult::kOk;
  json.Member("observable", status.observable() && test_ok);
  WriteChecks(json, status.checks);
  json.NewLine();
  json.Member("devices", status.devices);
  WriteModule(json, status.module);
  json.Key("test");
  if (test != nullptr) {
    WriteCheck(json, *test);
  } else {
    json.Null();
  }
  json.EndObject();
  json.Flush();
  out << '\n';
}

void WriteJson(std::ostream& out, const HostReport& report) {
  JsonWriter json(out);
  json.BeginObject();
  json.Member("schema", "mrscope.report/1");
  json.NewLine();
  json.Key("environment");
  WriteEnvironment(json, report.status.environment);
  json.NewLine();
  json.Member("observable", report.status.observable());
  WriteChecks(json, report.status.checks);
  json.NewLine();
  WriteModule(json, report.status.module);
  json.NewLine();
  json.Key("devices");
  json.BeginArray();
  for (const DeviceReport& device : report.devices) {
    json.NewLine();
    json.BeginObject();
    json.Member("name", device.identity.name);
    json.Member("firmware", device.identity.firmware);
    json.Member("vendor_id", device.identity.vendor_id);
    json.Member("part_id", device.identity.part_id);
    json.Key("trials");
    json.BeginArray();
    for (const Trial& trial : device.trials) {
      json.NewLine();
      WriteTrial(json, trial);
    }
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  json.Flush();
  out << '\n';
}

}  // namespace mrscope
