// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/access.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <infiniband/verbs.h>

#include <array>

#include "mrscope/file.h"

namespace mrscope {
namespace {

struct Flag {
  std::uint32_t bit;
  std::string_view name;
};

// The two flush bits are younger than Debian 12's headers, hence the numbers.
constexpr std::array<Flag, 11> kFlags = {{
    {IBV_ACCESS_LOCAL_WRITE, "local_write"},
    {IBV_ACCESS_REMOTE_WRITE, "remote_write"},
    {IBV_ACCESS_REMOTE_READ, "remote_read"},
    {IBV_ACCESS_REMOTE_ATOMIC, "remote_atomic"},
    {IBV_ACCESS_MW_BIND, "mw_bind"},
    {IBV_ACCESS_ZERO_BASED, "zero_based"},
    {IBV_ACCESS_ON_DEMAND, "on_demand"},
    {IBV_ACCESS_HUGETLB, "hugetlb"},
    {1U << 8, "flush_global"},
    {1U << 9, "flush_persistent"},
    {IBV_ACCESS_RELAXED_ORDERING, "relaxed_ordering"},
}};

}  // namespace

Result<std::uint32_t> ParseAccess(std::string_view text) {
  std::uint32_t access = 0;
  const auto words = Split(text, ',');
  for (const std::string_view untrimmed : words) {
    const std::string_view word = Trim(untrimmed);
    if (word == "none" && words.size() == 1) return std::uint32_t{0};
    bool known = false;
    for (const Flag& flag : kFlags) {
      if (flag.name != word) continue;
      access |= flag.bit;
      known = true;
    }
    if (!known) {
      std::vector<std::string_view> names;
      names.reserve(kFlags.size());
      for (const Flag& flag : kFlags) names.push_back(flag.name);
      return Error{ErrorKind::kUsage, 0,
                   fmt::format("unknown access flag \"{}\": use none or some of {}", word,
                               fmt::join(names, ","))};
    }
  }
  if (words.empty()) {
    return Error{ErrorKind::kUsage, 0, "no access flag given: use none for a local read-only MR"};
  }
  return access;
}

std::vector<std::string> AccessNames(std::uint32_t access) {
  std::vector<std::string> names;
  for (const Flag& flag : kFlags) {
    if ((access & flag.bit) == 0) continue;
    names.emplace_back(flag.name);
    access &= ~flag.bit;
  }
  if (access != 0) names.push_back(fmt::format("{:#x}", access));
  return names;
}

std::string FormatAccess(std::uint32_t access) {
  if (access == 0) return "none";
  return fmt::format("{}", fmt::join(AccessNames(access), ","));
}

bool NeedsLocalWrite(std::uint32_t access) {
  return (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0 &&
         (access & IBV_ACCESS_LOCAL_WRITE) == 0;
}

}  // namespace mrscope
