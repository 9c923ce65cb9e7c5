// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A command line of options with values (--size 4096) and without.

#ifndef TESTS_GUEST_OPTIONS_H_
#define TESTS_GUEST_OPTIONS_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <span>
#include <string>

class Options {
 public:
  // `known` is each option with the value that it has when not given; those
  // without a value have "" there and "1" when given. A mistake ends the program.
  Options(std::span<char*> argv, std::map<std::string, std::string> known)
      : values_(std::move(known)) {
    for (std::size_t i = 1; i < argv.size(); ++i) {
      const auto option = values_.find(argv[i]);
      if (option == values_.end()) Refuse(argv[i]);
      const bool takes_value = !option->second.empty();
      if (takes_value && i + 1 == argv.size()) Refuse(argv[i]);
      option->second = takes_value ? argv[++i] : "1";
    }
  }

  const std::string& Text(const std::string& name) const { return values_.at(name); }
  std::uint64_t Number(const std::string& name) const {
    return std::strtoull(Text(name).c_str(), nullptr, 0);
  }
  bool Flag(const std::string& name) const { return Text(name) == "1"; }

 private:
  [[noreturn]] static void Refuse(const char* word) {
    std::fprintf(stderr, "bad option %s\n", word);
    std::exit(2);
  }

  std::map<std::string, std::string> values_;
};

#endif  // TESTS_GUEST_OPTIONS_H_
