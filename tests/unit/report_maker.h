// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Whole reports for the tests of their formats.

#ifndef MRSCOPE_TESTS_REPORT_MAKER_H_
#define MRSCOPE_TESTS_REPORT_MAKER_H_

#include "mrscope/explain.h"
#include "mrscope/join.h"
#include "mrscope/record_session.h"
#include "record_maker.h"

namespace mrscope::test {

inline ExplainReport MakeExplainReport(const std::vector<KernelRecord>& reg,
                                       const std::vector<KernelRecord>& dereg) {
  ExplainReport report;
  report.environment.kernel = "6.12.0";
  report.count = static_cast<unsigned>(reg.size());
  report.capture_buffer = Bytes{1U << 20};
  report.cpus = 2;
  report.lost.module = 0;
  ExplainCase one;
  one.buffer = "anon";
  one.size = Bytes{4096};
  one.device = "rxe0";
  one.access = 7;
  one.last_lkey = 0x1234;
  one.last_rkey = 0x1234;
  const auto join = [](const std::vector<KernelRecord>& records) {
    std::vector<UserCall> calls;
    calls.reserve(records.size());
    for (const KernelRecord& record : records) calls.push_back(CallAround(record));
    return JoinOperations(calls, records);
  };
  one.reg = join(reg);
  one.dereg = join(dereg);
  for (const Operation& operation : one.reg) {
    if (operation.failed()) one.failure = Diagnose(operation, {});
  }
  report.cases.push_back(std::move(one));
  return report;
}

inline RecordReport MakeRecordReport(std::vector<KernelRecord> records) {
  RecordReport report;
  report.command = {"prog", "with \"quotes\""};
  report.exit.code = 0;
  report.cpus = 2;
  report.records = std::move(records);
  report.processes.push_back({100, 0, "prog", true});
  return report;
}

}  // namespace mrscope::test

#endif  // MRSCOPE_TESTS_REPORT_MAKER_H_
