// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Access flags of an MR by name: "local_write", "remote_read", …

#ifndef MRSCOPE_ACCESS_H_
#define MRSCOPE_ACCESS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mrscope/result.h"

namespace mrscope {

// Names separated by commas to enum ibv_access_flags; "none" is 0 (local read,
// which every MR has). Fails with kUsage, naming the known ones.
Result<std::uint32_t> ParseAccess(std::string_view text);

// In the order of the bits; a bit without a name gives "0x…".
std::vector<std::string> AccessNames(std::uint32_t access);

// The names separated by commas, or "none".
std::string FormatAccess(std::uint32_t access);

// A right to write that the device refuses without local_write.
bool NeedsLocalWrite(std::uint32_t access);

}  // namespace mrscope

#endif  // MRSCOPE_ACCESS_H_
