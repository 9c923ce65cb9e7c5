// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Why a registration failed, in one sentence with the remedy.

#ifndef MRSCOPE_DIAGNOSIS_H_
#define MRSCOPE_DIAGNOSIS_H_

#include <optional>
#include <string>

#include "mrscope/limits.h"
#include "mrscope/operation.h"

namespace mrscope {

struct Failure {
  std::string error;                 // "ENOMEM"
  std::optional<std::string> stage;  // where it failed; no value: not observed
  std::string explanation;
};

// What is known about the process that failed, beyond the operation.
struct FailureFacts {
  std::optional<PinLimits> limits;
  std::optional<bool> mapped;    // whether the range was mapped at all
  std::optional<bool> writable;  // whether it was mapped for writing
  std::optional<std::uint64_t> max_mr_size;
};

// `operation` has failed.
Failure Diagnose(const Operation& operation, const FailureFacts& facts);

}  // namespace mrscope

#endif  // MRSCOPE_DIAGNOSIS_H_
