// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Prints which stages of the operations that PATH selects have no time, and how
// they are merged, like "sg dma: pin,sg,dma". Lines that are the same are
// printed once; nothing where all stages have a time.
//
// Usage: mr_stages FILE PATH     paths: see json_path.h

#include <iostream>
#include <set>

#include "json_path.h"

namespace {

std::string Describe(const Json& operation) {
  std::string text;
  for (const auto& [name, time] : operation.at("stages_ns").items()) {
    if (!time.is_null()) continue;
    if (!text.empty()) text += ' ';
    text += name;
  }
  const char* separator = ": ";
  for (const Json& group : operation.at("merged")) {
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
    for (const Json* operation : Select(document, argv[2])) lines.insert(Describe(*operation));
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
