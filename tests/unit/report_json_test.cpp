// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/report_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "mrscope.h"
#include "report_maker.h"
#include "schema.h"

namespace mrscope {
namespace {

using nlohmann::json;

template <typename... Args>
json Written(const Args&... report) {
  std::ostringstream out;
  WriteJson(out, report...);
  return json::parse(out.str());
}

void ExpectSums(const json& operations) {
  for (const json& operation : operations) {
    std::int64_t sum = 0;
    for (const auto& [stage, time] : operation.at("stages_ns").items()) {
      if (!time.is_null()) sum += time.get<std::int64_t>();
    }
    EXPECT_EQ(sum, operation.at("total_ns").get<std::int64_t>());
  }
}

std::string Problems(const json& document, const std::string& schema) {
  std::string all;
  for (const std::string& problem : test::CheckSchema(document, schema)) all += problem + "\n";
  return all;
}

TEST(ReportJsonTest, ExplainFollowsItsSchema) {
  const json document = Written(test::MakeExplainReport(
      {test::MakeReg(1000), test::MakeReg(9000, 7)}, {test::MakeDereg(5000)}));
  EXPECT_EQ(Problems(document, "mrscope.explain.1.json"), "");
  EXPECT_EQ(document["schema"], "mrscope.explain/1");
  EXPECT_EQ(document["level"], "module");
  EXPECT_EQ(document["lost"], 0);
  const json& one = document["cases"][0];
  EXPECT_EQ(one["reg"].size(), 2U);
  EXPECT_EQ(one["dereg"].size(), 1U);
  ExpectSums(one["reg"]);
  ExpectSums(one["dereg"]);
  const json& reg = one["reg"][0];
  EXPECT_EQ(reg["total_ns"], 1030);
  EXPECT_EQ(reg["stages_ns"]["library"], 10);
  EXPECT_EQ(reg["stages_ns"]["attach"], 0);
  EXPECT_EQ(reg["join"], "exact");
  EXPECT_EQ(reg["errno"], nullptr);
  EXPECT_EQ(reg["failed_stage"], nullptr);
  EXPECT_EQ(reg["access"], json({"local_write", "remote_write", "remote_read"}));
  EXPECT_EQ(reg["addr"], "0x7f0000001000");
  EXPECT_EQ(reg["merged"], json::array());
  EXPECT_EQ(one["summary"]["reg"]["total_ns"]["p50"], 100);
  EXPECT_EQ(one["summary"]["reg"]["total_ns"]["max"], 1030);
  EXPECT_EQ(one["summary"]["dereg"]["stages_ns"]["unpin"]["p99"], 50);
}

TEST(ReportJsonTest, UserLevelMergesEverything) {
  ExplainReport report = test::MakeExplainReport({}, {});
  report.level = {Level::kUser, "no module"};
  report.capture_buffer.reset();
  report.cases[0].reg.push_back(
      MakeUserOperation(test::CallAround(test::MakeReg(1000)), JoinState::kNoRecord));
  const json document = Written(report);
  EXPECT_EQ(Problems(document, "mrscope.explain.1.json"), "");
  EXPECT_EQ(document["level"], "user");
  const json& reg = document["cases"][0]["reg"][0];
  EXPECT_EQ(reg["stages_ns"]["library"], reg["total_ns"]);
  EXPECT_EQ(reg["stages_ns"]["pin"], nullptr);
  EXPECT_EQ(reg["merged"].size(), 1U);
  EXPECT_EQ(reg["merged"][0].size(), kRegStages);
  EXPECT_EQ(reg["merged"][0][0], "library");
  EXPECT_EQ(reg["pages"], nullptr);
  ExpectSums(document["cases"][0]["reg"]);
}

TEST(ReportJsonTest, MergedStagesAreListedBehindTheirCarrier) {
  KernelRecord record = test::MakeReg(1000);
  test::Disarm(record, MRSCOPE_REG_TABLE);
  test::Disarm(record, MRSCOPE_REG_ATTACH);
  test::Disarm(record, MRSCOPE_REG_DMA);
  const json document = Written(test::MakeExplainReport({record}, {}));
  EXPECT_EQ(document["cases"][0]["reg"][0]["merged"],
            json::array({json::array({"sg", "dma", "attach", "table"})}));
  ExpectSums(document["cases"][0]["reg"]);
}

TEST(ReportJsonTest, FailuresAreComplete) {
  KernelRecord record = test::MakeReg(1000);
  record.ret = -EFAULT;
  record.failed_stage = MRSCOPE_REG_PIN;
  record.flags &= ~MRSCOPE_F_LKEY;
  const json document = Written(test::MakeExplainReport({record}, {}));
  EXPECT_EQ(Problems(document, "mrscope.explain.1.json"), "");
  const json& one = document["cases"][0];
  EXPECT_EQ(one["reg"][0]["errno"], "EFAULT");
  EXPECT_EQ(one["reg"][0]["failed_stage"], "pin");
  EXPECT_EQ(one["reg"][0]["lkey_index"], nullptr);
  EXPECT_EQ(one["failure"]["errno"], "EFAULT");
  EXPECT_EQ(one["failure"]["stage"], "pin");
  EXPECT_EQ(one["summary"]["reg"]["total_ns"], nullptr);
}

TEST(ReportJsonTest, WholeKeysOnlyWhenAskedFor) {
  KernelRecord record = test::MakeReg(1000);
  ExplainReport report = test::MakeExplainReport({record}, {});
  json reg = Written(report)["cases"][0]["reg"][0];
  EXPECT_EQ(reg["lkey_index"], "0x12");
  EXPECT_EQ(reg["lkey"], nullptr);
  // Not even from a record that has them, made for somebody else.
  record.flags |= MRSCOPE_F_KEYS;
  record.lkey = record.rkey = 0x1234;
  report = test::MakeExplainReport({record}, {});
  EXPECT_EQ(Written(report)["cases"][0]["reg"][0]["lkey"], nullptr);
  report.keys = true;
  reg = Written(report)["cases"][0]["reg"][0];
  EXPECT_EQ(reg["lkey"], "0x1234");
  EXPECT_EQ(reg["rkey"], "0x1234");
  EXPECT_EQ(reg["rkey_index"], "0x12");
}

TEST(ReportJsonTest, RecordFollowsItsSchema) {
  KernelRecord cleanup = test::MakeDereg(5000);
  cleanup.entry = MRSCOPE_ENTRY_CLEANUP;
  cleanup.tid = cleanup.tgid = 7;
  RecordReport report = test::MakeRecordReport({test::MakeReg(1000), cleanup});
  report.exit = {.code = std::nullopt, .signal = SIGKILL, .why_not_started = ""};
  const json document = Written(report);
  EXPECT_EQ(Problems(document, "mrscope.record.1.json"), "");
  EXPECT_EQ(document["command"][1], "with \"quotes\"");
  EXPECT_EQ(document["exit"]["signal"], "SIGKILL");
  EXPECT_EQ(document["exit"]["code"], nullptr);
  EXPECT_EQ(document["reg"].size(), 1U);
  EXPECT_EQ(document["reg"][0]["stages_ns"]["library"], nullptr);
  const json& dereg = document["dereg"][0];
  EXPECT_EQ(dereg["owner"], json({{"pid", 100}, {"comm", "prog"}}));
  EXPECT_EQ(dereg["task"], json({{"pid", 7}, {"tid", 7}, {"comm", "prog"}}));
  EXPECT_EQ(dereg["entry"], "cleanup");
  ExpectSums(document["reg"]);
  ExpectSums(document["dereg"]);
}

TEST(ReportJsonTest, ACommandThatDidNotStart) {
  RecordReport report = test::MakeRecordReport({});
  report.exit = {
      .code = std::nullopt, .signal = std::nullopt, .why_not_started = "no such program"};
  const json document = Written(report);
  EXPECT_EQ(Problems(document, "mrscope.record.1.json"), "");
  EXPECT_EQ(document["exit"]["started"], false);
  EXPECT_EQ(document["exit"]["error"], "no such program");
}

TEST(ReportJsonTest, StatusFollowsItsSchema) {
  HostStatus status;
  status.checks.push_back({"module", CheckResult::kMissing, "not loaded", "nothing", "insmod"});
  const Check test{"test registration", CheckResult::kOk, "fine", "", ""};
  json document = Written(status, static_cast<const Check*>(nullptr));
  EXPECT_EQ(Problems(document, "mrscope.status.1.json"), "");
  EXPECT_EQ(document["observable"], false);
  EXPECT_EQ(document["module"], nullptr);

  status.checks.clear();
  status.module = ParseModuleStatus(
      "mrscope 0.1\nenabled 1\nboundary pin armed pin_user_pages_fast 1 0\nboundary x unarmed -\n");
  document = Written(status, &test);
  EXPECT_EQ(Problems(document, "mrscope.status.1.json"), "");
  EXPECT_EQ(document["observable"], true);
  EXPECT_EQ(document["module"]["boundaries"][1]["symbol"], nullptr);
  EXPECT_EQ(document["test"]["result"], "ok");
}

TEST(ReportJsonTest, HostReportFollowsItsSchemaAndTellsNoSecrets) {
  KernelRecord failed = test::MakeReg(1000);
  failed.ret = -EFAULT;
  failed.failed_stage = MRSCOPE_REG_PIN;
  HostReport report;
  report.devices.push_back({{"rxe0", "1.0", 0xffffff, 7}, {}});
  for (const auto& reg : {test::MakeReg(1000), failed}) {
    auto cases = test::MakeExplainReport({reg}, {test::MakeDereg(500)}).cases;
    report.devices[0].trials.push_back({"anon 4 KiB", "", std::move(cases)});
  }
  report.devices[0].trials.push_back({"thp 4 MiB", "no huge pages", {}});
  const json document = Written(report);
  EXPECT_EQ(Problems(document, "mrscope.report.1.json"), "");
  const json& trials = document["devices"][0]["trials"];
  EXPECT_EQ(trials[0]["cases"][0]["reg"]["recorded"], true);
  EXPECT_EQ(trials[0]["cases"][0]["reg"]["summary"]["stages_ns"]["pin"]["p50"],
            test::MakeReg(1000).stage_ns[MRSCOPE_REG_PIN]);
  EXPECT_EQ(trials[1]["cases"][0]["failed_stage"], "pin");
  EXPECT_EQ(trials[2]["error"], "no huge pages");
  EXPECT_EQ(document.dump().find("0x"), std::string::npos);
  EXPECT_EQ(document.dump().find("prog"), std::string::npos);
}

TEST(ReportJsonTest, RandomRecordsGiveValidDocuments) {
  std::mt19937_64 random(5);
  std::vector<KernelRecord> records;
  records.reserve(500);
  for (int i = 0; i < 500; ++i) records.push_back(test::RandomRecord(random));
  const json document = Written(test::MakeRecordReport(records));
  EXPECT_EQ(Problems(document, "mrscope.record.1.json"), "");
  EXPECT_EQ(document["reg"].size() + document["dereg"].size(), 500U);
  ExpectSums(document["reg"]);
  ExpectSums(document["dereg"]);
}

}  // namespace
}  // namespace mrscope
