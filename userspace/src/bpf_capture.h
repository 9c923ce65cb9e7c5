// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A capture without mrscope.ko.

#ifndef MRSCOPE_BPF_CAPTURE_H_
#define MRSCOPE_BPF_CAPTURE_H_

#include <memory>

#include "mrscope/capture.h"

namespace mrscope {

// kPrerequisite with a remedy: not root, no types of the kernel (BTF), lockdown,
// a function that is not there.
Result<std::unique_ptr<Capture>> StartBpfCapture(const CaptureOptions& options, Capture::Sink sink);

}  // namespace mrscope

#endif  // MRSCOPE_BPF_CAPTURE_H_
