// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Reports as JSON; docs/json.md describes the documents.

#ifndef MRSCOPE_REPORT_JSON_H_
#define MRSCOPE_REPORT_JSON_H_

#include <ostream>

#include "mrscope/explain.h"
#include "mrscope/host_report.h"
#include "mrscope/host_status.h"
#include "mrscope/json_writer.h"
#include "mrscope/operation.h"
#include "mrscope/record_session.h"
#include "mrscope/statistics.h"

namespace mrscope {

// Whole keys only with `keys`: they are capabilities. The index is always told.
void WriteOperation(JsonWriter& json, const Operation& operation, bool keys);
void WriteEnvironment(JsonWriter& json, const Environment& environment);
void WriteSummary(JsonWriter& json, const Summary& summary,
                  std::span<const std::string_view> stage_names);

// Each writes one whole document.
void WriteJson(std::ostream& out, const ExplainReport& report);
void WriteJson(std::ostream& out, const RecordReport& report);
// `test` is the registration made by --test, if one was made.
void WriteJson(std::ostream& out, const HostStatus& status, const Check* test);
// Whole keys and addresses never get here.
void WriteJson(std::ostream& out, const HostReport& report);

}  // namespace mrscope

#endif  // MRSCOPE_REPORT_JSON_H_
