// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "bpf_object.h"

// MRSCOPE_BPF_OBJECT is the path of the compiled programs.
asm(".section .rodata\n"
    ".balign 8\n"
    "mrscope_bpf_object: .incbin \"" MRSCOPE_BPF_OBJECT
    "\"\n"
    "mrscope_bpf_object_end: .byte 0\n"
    ".previous\n");

extern "C" {
extern const std::byte mrscope_bpf_object[];      // NOLINT
extern const std::byte mrscope_bpf_object_end[];  // NOLINT
}

namespace mrscope {

std::span<const std::byte> BpfObject() { return {mrscope_bpf_object, mrscope_bpf_object_end}; }

}  // namespace mrscope
