// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// How operations are seen: the best that the host allows, unless one is asked
// for by name.

#ifndef MRSCOPE_LEVEL_H_
#define MRSCOPE_LEVEL_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "mrscope/result.h"

namespace mrscope {

enum class Level : std::uint8_t {
  kModule,  // by mrscope.ko
  kBpf,     // by BPF programs at the same functions: fewer stages, and dearer
  kUser,    // the caller's time alone
};

// "module", "bpf", "user"
std::string_view LevelName(Level level);
// A usage error for any other word.
Result<Level> ParseLevel(std::string_view name);

// The level that was used, and why no better one: "" where there is none, or
// none was asked for.
struct UsedLevel {
  Level level = Level::kModule;
  std::string reason;
};

}  // namespace mrscope

#endif  // MRSCOPE_LEVEL_H_
