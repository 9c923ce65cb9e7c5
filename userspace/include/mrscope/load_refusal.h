// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Why the kernel would not load mrscope.ko. insmod says little more than
// "Invalid argument"; the kernel's log has the reason.

#ifndef MRSCOPE_LOAD_REFUSAL_H_
#define MRSCOPE_LOAD_REFUSAL_H_

#include <optional>
#include <string>
#include <string_view>

namespace mrscope {

struct LoadRefusal {
  std::string why;
  std::string remedy;
};

// The newest refusal in a kernel log of one message a line, if it has one that
// is, or may be, of mrscope.ko.
std::optional<LoadRefusal> FindLoadRefusal(std::string_view log);

// The messages of the kernel that are still there; "" without permission.
std::string ReadKernelLog(const std::string& root = "");

}  // namespace mrscope

#endif  // MRSCOPE_LOAD_REFUSAL_H_
