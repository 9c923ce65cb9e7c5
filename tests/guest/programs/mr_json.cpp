// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Prints parts of a JSON document, which must be one and valid.
//
// Usage: mr_json FILE PATH [FIELD...]     paths: see json_path.h
// One line for each thing that PATH selects: itself, or these fields of it.
// Exit status: 0, or 2 where FILE is not one valid document.

#include <iostream>
#include <span>

#include "json_path.h"

int main(int argc, char** argv) {
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  if (argc < 3) {
    std::cerr << "usage: mr_json FILE PATH [FIELD...]\n";
    return 2;
  }
  try {
    const Json document = ReadJson(arguments[1]);
    for (const Json* value : Select(document, arguments[2])) {
      std::string line;
      for (const char* field : arguments.subspan(3)) {
        if (!line.empty()) line += ' ';
        for (const Json* part : Select(*value, field)) line += Text(*part);
      }
      std::cout << (arguments.size() > 3 ? line : Text(*value)) << '\n';
    }
  } catch (const Json::exception& error) {
    std::cerr << arguments[1] << ": " << error.what() << '\n';
    return 2;
  }
  return 0;
}
