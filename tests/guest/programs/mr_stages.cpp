// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Prints which stages of the operations that PATH selects have no time, and how
// they are merged, like "sg dma: pin,sg,dma". Lines that are the same are
// printed once; nothing where all stages have a time.
//
// A task that was switched out on its way from the system call to the root has
// no "syscall": of the module's reading, not of what is armed. Such an operation
// is left out where another one is the same but for that.
//
// Usage: mr_stages FILE PATH     paths: see json_path.h

#include <algorithm>
#include <iostream>
#include <set>
#include <string>
#include <string_view>

#include "json_path.h"

namespace {

constexpr const char* kSyscall = "syscall";

bool HasSyscall(const Json& operation) { return !operation.at("stages_ns").at(kSyscall).is_null(); }

std::string Describe(const Json& operation, std::string_view but = "") {
  std::string text;
  for (const auto& [name, time] : operation.at("stages_ns").items()) {
    if (!time.is_null() || name == but) continue;
    if (!text.empty()) text += ' ';
    text += name;
  }
  const char* separator = ": ";
  for (Json group : operation.at("merged")) {
    group.erase(std::remove(group.begin(), group.end(), Json(but)), group.end());
    if (group.size() < 2) continue;
    text += separator + Text(group);
    separator = " ";
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: mr_stages FILE PATH\n";
    return 2;
  }
  try {
    const Json document = ReadJson(argv[1]);
    std::set<std::string> lines;
    const auto operations = Select(document, argv[2]);
    for (const Json* one : operations) {
      if (HasSyscall(*one)) lines.insert(Describe(*one));
    }
    for (const Json* one : operations) {
      if (!HasSyscall(*one) && !lines.contains(Describe(*one, kSyscall))) {
        lines.insert(Describe(*one));
      }
    }
    // Where there is no operation, nothing is known of its stages.
    if (lines.empty()) lines.insert("no operation");
    lines.erase("");
    for (const std::string& line : lines) std::cout << line << '\n';
    return 0;
  } catch (const Json::exception& error) {
    std::cout << argv[1] << ": " << error.what() << '\n';
    return 2;
  }
}
