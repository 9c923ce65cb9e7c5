// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/narrative.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "mrscope.h"
#include "report_maker.h"

namespace mrscope {
namespace {

KernelRecord WithPin(std::uint64_t pin_ns, std::uint64_t pages, std::uint32_t faults) {
  KernelRecord record = test::MakeReg(1000, 10);
  record.total_ns += pin_ns - record.stage_ns.at(MRSCOPE_REG_PIN);
  record.stage_ns.at(MRSCOPE_REG_PIN) = pin_ns;
  record.pages = pages;
  record.faults_minor = faults;
  return record;
}

std::string SentenceOf(const ExplainCase& one, std::string_view stage) {
  for (const std::string& sentence : Narrate(one)) {
    if (sentence.starts_with(stage)) return sentence;
  }
  return "";
}

TEST(SharesTest, AddUpToTheWhole) {
  const auto report = test::MakeExplainReport({test::MakeReg(1000), test::MakeReg(9000, 33)}, {});
  const auto shares = Shares(Summarize(report.cases[0].reg));
  EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 100.0, 1e-9);
}

TEST(SharesTest, OneOutlierDoesNotDecide) {
  KernelRecord outlier = test::MakeReg(100'000, 10);
  outlier.total_ns += 1'000'000;
  outlier.stage_ns.at(MRSCOPE_REG_UVERBS) += 1'000'000;
  KernelRecord second = WithPin(1000, 1, 1);
  second.start_ns += 10'000;
  const auto report = test::MakeExplainReport({WithPin(1000, 1, 1), second, outlier}, {});
  EXPECT_EQ(LargestStages(Summarize(report.cases[0].reg)).front(), Index(RegStage::kPin));
}

TEST(LargestStagesTest, ThreeAtLeastAndAllLargeOnes) {
  auto report = test::MakeExplainReport({WithPin(100000, 256, 256)}, {});
  EXPECT_EQ(LargestStages(Summarize(report.cases[0].reg)).size(), 3U);
  EXPECT_EQ(LargestStages(Summarize(report.cases[0].reg)).front(), Index(RegStage::kPin));
  report = test::MakeExplainReport({}, {test::MakeDereg(1000)});
  EXPECT_GE(LargestStages(Summarize(report.cases[0].dereg)).size(), 3U);
  EXPECT_TRUE(LargestStages(Summarize({})).empty());
}

TEST(NarrateTest, UntouchedPinSpeaksOfFaults) {
  const auto report = test::MakeExplainReport({WithPin(256000, 256, 256)}, {});
  const std::string sentence = SentenceOf(report.cases[0], "pin:");
  EXPECT_NE(sentence.find("256 pages"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("256 minor"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("1.00 us a page"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("touching the buffer first"), std::string::npos) << sentence;
}

TEST(NarrateTest, TouchedPinSpeaksOfReferences) {
  auto report = test::MakeExplainReport({WithPin(256000, 256, 0)}, {});
  report.cases[0].touched = true;
  const std::string sentence = SentenceOf(report.cases[0], "pin:");
  EXPECT_NE(sentence.find("no page fault"), std::string::npos) << sentence;
}

TEST(NarrateTest, HugePagesSpeakOfFewFaults) {
  const auto report = test::MakeExplainReport({WithPin(256000, 2048, 4)}, {});
  const std::string sentence = SentenceOf(report.cases[0], "pin:");
  EXPECT_NE(sentence.find("4 faults"), std::string::npos) << sentence;
}

TEST(NarrateTest, UncountedHugetlbFaultsAreNotTakenForPagesThatWereThere) {
  auto report = test::MakeExplainReport({WithPin(256000, 512, 0)}, {});
  report.cases[0].buffer = "huge2m";
  const std::string sentence = SentenceOf(report.cases[0], "pin:");
  EXPECT_NE(sentence.find("zeroed"), std::string::npos) << sentence;
  EXPECT_EQ(sentence.find("no page fault"), std::string::npos) << sentence;
}

TEST(NarrateTest, EveryStageHasASentence) {
  for (unsigned stage = 0; stage < MRSCOPE_REG_STAGES; ++stage) {
    KernelRecord record = test::MakeReg(1000, 1);
    record.total_ns += 100000 - record.stage_ns.at(stage);
    record.stage_ns.at(stage) = 100000;
    const auto report = test::MakeExplainReport({record}, {});
    const auto name = RegStageNames()[stage + 1];
    EXPECT_FALSE(SentenceOf(report.cases[0], std::string(name) + ":").empty()) << name;
  }
  for (unsigned stage = 0; stage < MRSCOPE_DEREG_STAGES; ++stage) {
    KernelRecord record = test::MakeDereg(1000, 1);
    record.total_ns += 100000 - record.stage_ns.at(stage);
    record.stage_ns.at(stage) = 100000;
    const auto report = test::MakeExplainReport({}, {record});
    const std::string name = "deregistration, " + std::string(DeregStageNames()[stage + 1]) + ":";
    EXPECT_FALSE(SentenceOf(report.cases[0], name).empty()) << name;
  }
}

}  // namespace
}  // namespace mrscope
