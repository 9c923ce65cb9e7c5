// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/level.h"

#include <fmt/format.h>

namespace mrscope {

std::string_view LevelName(Level level) {
  switch (level) {
    case Level::kModule:
      return "module";
    case Level::kBpf:
      return "bpf";
    case Level::kUser:
      return "user";
  }
  return "unknown";
}

Result<Level> ParseLevel(std::string_view name) {
  for (const Level level : {Level::kModule, Level::kBpf, Level::kUser}) {
    if (name == LevelName(level)) return level;
  }
  return Error{ErrorKind::kUsage, 0,
               fmt::format("--level takes module, bpf or user, not '{}'", name)};
}

}  // namespace mrscope
