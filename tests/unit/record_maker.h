// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Synthetic records and calls for the tests.

#ifndef MRSCOPE_TESTS_RECORD_MAKER_H_
#define MRSCOPE_TESTS_RECORD_MAKER_H_

#include <cstdint>
#include <random>

#include "mrscope/operation.h"
#include "mrscope/record.h"

namespace mrscope::test {

// A whole registration of one page as rxe gives it: every stage but attach and
// unwind took `stage_ns`; starts at `start_ns`.
KernelRecord MakeReg(std::uint64_t start_ns, std::uint64_t stage_ns = 100);
KernelRecord MakeDereg(std::uint64_t start_ns, std::uint64_t stage_ns = 50);

// The call around a record, `before` and `after` ns longer.
UserCall CallAround(const KernelRecord& record, std::uint64_t before = 10,
                    std::uint64_t after = 20);

// Any record the module could write: random stages observed, merged or null,
// whose times add up to the total.
KernelRecord RandomRecord(std::mt19937_64& random);

// Takes the observation of kernel stage `stage` away: its time goes to the
// nearest earlier observed stage that took time.
void Disarm(KernelRecord& record, unsigned stage);

}  // namespace mrscope::test

#endif  // MRSCOPE_TESTS_RECORD_MAKER_H_
