// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The compiled BPF programs, which CMake puts into the library.

#ifndef MRSCOPE_BPF_OBJECT_H_
#define MRSCOPE_BPF_OBJECT_H_

#include <cstddef>
#include <span>

namespace mrscope {

std::span<const std::byte> BpfObject();

}  // namespace mrscope

#endif  // MRSCOPE_BPF_OBJECT_H_
