// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/report_text.h"

#include <gtest/gtest.h>

#include "mrscope.h"
#include "report_maker.h"

namespace mrscope {
namespace {

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(ReportTextTest, ExplainNamesEveryStageAndCount) {
  const std::string text =
      FormatReport(test::MakeExplainReport({test::MakeReg(1000)}, {test::MakeDereg(5000)}));
  for (const auto stage : RegStageNames()) EXPECT_TRUE(Has(text, stage)) << stage;
  for (const auto stage : DeregStageNames()) EXPECT_TRUE(Has(text, stage)) << stage;
  EXPECT_TRUE(Has(text, "100.0 %"));
  EXPECT_TRUE(Has(text, "1 page, 1 minor fault, 0 major faults, 1 pin batch"));
  EXPECT_TRUE(Has(text, "lkey index 0x12 variant 0x34"));
  EXPECT_TRUE(Has(text, "lost 0"));
}

TEST(ReportTextTest, MissingTimesAreSaidToBeMissing) {
  KernelRecord record = test::MakeReg(1000);
  test::Disarm(record, MRSCOPE_REG_SG);
  record.observed &= ~(1U << MRSCOPE_REG_ATTACH);
  const std::string text = FormatReport(test::MakeExplainReport({record}, {}));
  EXPECT_TRUE(Has(text, "merged with pin"));
  EXPECT_TRUE(Has(text, "not observed"));
}

TEST(ReportTextTest, FailureNamesErrnoStageAndRemedy) {
  KernelRecord record = test::MakeReg(1000);
  record.ret = -ENOMEM;
  record.failed_stage = MRSCOPE_REG_ACCOUNT;
  const std::string text = FormatReport(test::MakeExplainReport({record}, {}));
  EXPECT_TRUE(Has(text, "FAILED with ENOMEM in stage account"));
  EXPECT_TRUE(Has(text, "ulimit -l"));
}

TEST(ReportTextTest, LossIsShown) {
  ExplainReport report = test::MakeExplainReport({test::MakeReg(1000)}, {});
  report.lost.buffer = 7;
  EXPECT_TRUE(Has(FormatReport(report), "lost 7"));
  EXPECT_TRUE(Has(FormatReport(report), "WARNING"));
}

TEST(ReportTextTest, RecordListsAtMostTheRowsAskedForButEveryFailure) {
  std::vector<KernelRecord> records(10, test::MakeReg(1000));
  records.back().ret = -EINVAL;
  records.back().failed_stage = MRSCOPE_REG_UVERBS;
  records.push_back(test::MakeDereg(5000));
  const std::string text = FormatReport(test::MakeRecordReport(records), 3);
  EXPECT_TRUE(Has(text, "registrations (10)"));
  EXPECT_TRUE(Has(text, "and 6 more"));
  EXPECT_TRUE(Has(text, "EINVAL"));
  EXPECT_TRUE(Has(text, "deregistrations (1)"));
  EXPECT_TRUE(Has(text, "exited with 0"));
}

TEST(ReportTextTest, RecordSaysHowTheCommandEndedAndWhoLives) {
  RecordReport report = test::MakeRecordReport({});
  report.exit = {.code = std::nullopt, .signal = SIGKILL, .why_not_started = ""};
  report.alive = {55};
  const std::string text = FormatReport(report, 3);
  EXPECT_TRUE(Has(text, "killed by SIGKILL"));
  EXPECT_TRUE(Has(text, "still running"));
  EXPECT_TRUE(Has(text, "55"));
}

TEST(ReportTextTest, StatusShowsRemedies) {
  HostStatus status;
  status.checks.push_back(
      {"module", CheckResult::kMissing, "not loaded", "nothing is seen", "insmod"});
  const std::string text = FormatReport(status, nullptr);
  EXPECT_TRUE(Has(text, "MISSING"));
  EXPECT_TRUE(Has(text, "remedy: insmod"));
}

}  // namespace
}  // namespace mrscope
