// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// From what the BPF programs saw of an operation to a KernelRecord: which stages
// did not happen, and which could not be told from their neighbours. The same
// rules as those of mrscope.ko (kmod/mrscope/record.c).

#ifndef MRSCOPE_BPF_ACCOUNT_H_
#define MRSCOPE_BPF_ACCOUNT_H_

#include <bitset>
#include <cstdint>
#include <optional>

#include "mrscope/record.h"
#include "mrscope/units.h"
#include "record.h"

namespace mrscope {

// What looking costs, of the time from one program to the next.
struct BpfCost {
  Nanoseconds begin;   // behind the program at the root
  Nanoseconds entry;   // behind every other one
  Nanoseconds record;  // behind the one that writes it, and not in total_ns
};

struct BpfFacts {
  std::bitset<MRS_BPF_BOUNDARIES> attached;
  std::optional<BpfCost> cost;
  bool keys = false;  // records carry whole keys
};

// Without its seq and the name of its device.
KernelRecord RecordOf(const mrs_bpf_operation& operation, const BpfFacts& facts);

}  // namespace mrscope

#endif  // MRSCOPE_BPF_ACCOUNT_H_
