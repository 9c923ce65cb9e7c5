// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Reports for people, as lines of at most about 100 columns.

#ifndef MRSCOPE_REPORT_TEXT_H_
#define MRSCOPE_REPORT_TEXT_H_

#include <cstddef>
#include <string>

#include "mrscope/explain.h"
#include "mrscope/host_status.h"
#include "mrscope/record_session.h"

namespace mrscope {

std::string FormatReport(const ExplainReport& report);
// At most `rows` operations are listed, the failed ones always.
std::string FormatReport(const RecordReport& report, std::size_t rows);
std::string FormatReport(const HostStatus& status, const Check* test);

}  // namespace mrscope

#endif  // MRSCOPE_REPORT_TEXT_H_
