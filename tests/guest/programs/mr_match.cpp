// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Compares what programs logged of their own calls (call_log.h) with what
// mr_probe record wrote of them: each call has one record with the same
// operation, thread, address, length, access, errno and, where the report has
// them, keys; nothing else was recorded; nothing was lost.
//
// Usage: mr_match LOG REPORT
// Prints the counts. Exits with 1 where something does not match or was lost.

#include <cstdint>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "call_log.h"
#include "mrscope/access.h"
#include "mrscope/file.h"

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kShown = 10;  // of each kind of mismatch

// What must be the same, as text. The core knows no access flags at the end of
// an MR, and a failed call has no keys.
std::string Signature(Call call, bool keys) {
  if (call.dereg) call.access = 0;
  if (!keys || call.error != 0) call.lkey = call.rkey = 0;
  return FormatCall(call);
}

std::uint64_t Number(const Json& text) {
  return text.is_null() ? 0 : std::stoull(text.get<std::string>(), nullptr, 16);
}

std::uint32_t AccessOf(const Json& names) {
  std::string text;
  for (const Json& name : names) text += (text.empty() ? "" : ",") + name.get<std::string>();
  const auto access = mrscope::ParseAccess(text.empty() ? "none" : text);
  return access ? *access : ~0U;
}

// By name, for the few that registrations end with.
int ErrnoOf(const Json& name) {
  if (name.is_null()) return 0;
  for (int error = 1; error < 134; ++error)
    if (mrscope::ErrnoName(error) == name.get<std::string>()) return error;
  return -1;
}

Call CallOf(const Json& operation) {
  Call call;
  call.dereg = operation.at("op") == "dereg";
  call.tid = operation.at("tid").get<int>();
  call.addr = Number(operation.at("addr"));
  call.length = operation.at("length").is_null() ? 0 : operation.at("length").get<std::uint64_t>();
  if (!call.dereg) call.access = AccessOf(operation.at("access"));
  call.lkey = static_cast<std::uint32_t>(Number(operation.at("lkey")));
  call.rkey = static_cast<std::uint32_t>(Number(operation.at("rkey")));
  call.error = ErrnoOf(operation.at("errno"));
  return call;
}

struct Report {
  std::vector<Call> records;
  std::uint64_t lost = 0;
  bool keys = false;
};

// Operations are let go of as they come: there may be a great many.
Report ReadReport(const std::string& path) {
  Report report;
  std::ifstream file(path);
  const Json rest = Json::parse(file, [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth != 2 || event != Json::parse_event_t::object_end || !parsed.contains("op"))
      return true;
    report.records.push_back(CallOf(parsed));
    report.keys = report.keys || !parsed.at("lkey").is_null();
    return false;
  });
  report.lost = rest.at("lost").get<std::uint64_t>();
  return report;
}

bool ReadLog(const std::string& path, std::vector<Call>& calls) {
  std::ifstream log(path);
  for (std::string line; std::getline(log, line);) {
    Call call;
    if (!ParseCall(line, call)) {
      std::cout << path << ": not a call: " << line << '\n';
      return false;
    }
    calls.push_back(call);
  }
  return true;
}

bool Match(const std::vector<Call>& calls, const Report& report) {
  std::unordered_map<std::string, int> left;
  for (const Call& call : calls) ++left[Signature(call, report.keys)];
  std::uint64_t strange = 0;
  for (const Call& record : report.records) {
    const std::string signature = Signature(record, report.keys);
    const auto found = left.find(signature);
    if (found != left.end() && found->second > 0) {
      --found->second;
    } else if (strange++ < kShown) {
      std::cout << "recorded, but not made: " << signature;
    }
  }
  std::uint64_t missing = 0;
  for (const auto& [signature, count] : left) {
    missing += static_cast<std::uint64_t>(count);
    if (count > 0 && missing <= kShown) std::cout << "made, but not recorded: " << signature;
  }
  std::cout << "made " << calls.size() << ", taken " << report.records.size() << ", lost "
            << report.lost << (report.keys ? ", with whole keys" : "") << '\n';
  return strange == 0 && missing == 0 && report.lost == 0 && !calls.empty();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: mr_match LOG REPORT\n";
    return 2;
  }
  try {
    std::vector<Call> calls;
    if (!ReadLog(argv[1], calls)) return 2;
    return Match(calls, ReadReport(argv[2])) ? 0 : 1;
  } catch (const Json::exception& error) {
    std::cout << argv[2] << ": " << error.what() << '\n';
    return 2;
  }
}
