// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// One plain sentence for each stage that matters: what the kernel does there,
// with the numbers of this very measurement.

#ifndef MRSCOPE_NARRATIVE_H_
#define MRSCOPE_NARRATIVE_H_

#include <string>
#include <vector>

#include "mrscope/explain.h"
#include "mrscope/statistics.h"

namespace mrscope {

// Share of each stage's p50 in the sum of them all, in %; 0 where not observed.
// Not of the sums: one preempted registration would speak louder than the rest.
std::vector<double> Shares(const Summary& summary);

// The successful operation of median total, whose counts stand for the rest;
// nullptr where none succeeded.
const Operation* Typical(const std::vector<Operation>& operations);

// The largest stages: those of at least 10 %, but never fewer than three where
// three were observed and took time. Largest first.
std::vector<std::size_t> LargestStages(const Summary& summary);

// "stage: sentence" for the largest stages of the registrations, then of the
// deregistrations.
std::vector<std::string> Narrate(const ExplainCase& one);

}  // namespace mrscope

#endif  // MRSCOPE_NARRATIVE_H_
