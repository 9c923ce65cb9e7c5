// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What a program knows of a registration or deregistration that it made: one
// line each, to be compared with what was recorded of it.

#ifndef TESTS_GUEST_CALL_LOG_H_
#define TESTS_GUEST_CALL_LOG_H_

#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>

// lkey and rkey are 0 where the call failed. The errno is that of the caller.
struct Call {
  bool dereg = false;
  int tid = 0;
  std::uint64_t addr = 0;
  std::uint64_t length = 0;
  std::uint32_t access = 0;
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
  int error = 0;
};

inline std::string FormatCall(const Call& call) {
  char line[160];
  std::snprintf(line, sizeof line,
                "%s %d 0x%" PRIx64 " %" PRIu64 " 0x%" PRIx32 " 0x%" PRIx32 " 0x%" PRIx32 " %d\n",
                call.dereg ? "dereg" : "reg", call.tid, call.addr, call.length, call.access,
                call.lkey, call.rkey, call.error);
  return line;
}

inline bool ParseCall(const std::string& line, Call& call) {
  char op[8];
  const int fields = std::sscanf(
      line.c_str(), "%7s %d %" SCNx64 " %" SCNu64 " %" SCNx32 " %" SCNx32 " %" SCNx32 " %d", op,
      &call.tid, &call.addr, &call.length, &call.access, &call.lkey, &call.rkey, &call.error);
  call.dereg = std::string(op) == "dereg";
  return fields == 8;
}

#endif  // TESTS_GUEST_CALL_LOG_H_
