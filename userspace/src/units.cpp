// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/units.h"

#include <fmt/format.h>
#include <time.h>  // NOLINT(modernize-deprecated-headers): clock_gettime is POSIX

#include <array>
#include <charconv>
#include <limits>

namespace mrscope {

Nanoseconds MonotonicNow() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::chrono::seconds(now.tv_sec) + Nanoseconds(now.tv_nsec);
}

Result<Bytes> ParseSize(std::string_view text) {
  const Error bad{
      ErrorKind::kUsage, 0,
      fmt::format("size \"{}\" is not a number of bytes like 4096, 4K, 64M or 1G", text)};
  std::uint64_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), last, number);
  if (status == std::errc::result_out_of_range) {
    return Error{ErrorKind::kUsage, 0, fmt::format("size \"{}\" does not fit in 64 bits", text)};
  }
  if (status != std::errc()) return bad;

  std::string_view suffix(rest, static_cast<std::size_t>(last - rest));
  unsigned shift = 0;
  if (!suffix.empty()) {
    constexpr std::string_view kLetters = "KMGT";
    const char letter = suffix[0] >= 'a' ? static_cast<char>(suffix[0] - 'a' + 'A') : suffix[0];
    const auto index = kLetters.find(letter);
    if (index == std::string_view::npos) {
      if (suffix != "B") return bad;
    } else {
      suffix.remove_prefix(1);
      if (!suffix.empty() && suffix != "iB" && suffix != "B") return bad;
      shift = static_cast<unsigned>(index + 1) * 10;
    }
  }
  if (number == 0) {
    return Error{ErrorKind::kUsage, 0, "0 is no size: give at least 1 byte"};
  }
  if (number > (std::numeric_limits<std::uint64_t>::max() >> shift)) {
    return Error{ErrorKind::kUsage, 0, fmt::format("size \"{}\" does not fit in 64 bits", text)};
  }
  return Bytes{number << shift};
}

std::string FormatBytes(Bytes size) {
  struct Unit {
    Bytes unit;
    const char* name;
  };
  static constexpr std::array<Unit, 4> kUnits = {
      {{{1ULL << 40}, "TiB"}, {kGiB, "GiB"}, {kMiB, "MiB"}, {kKiB, "KiB"}}};
  for (const Unit& unit : kUnits) {
    if (size < unit.unit) continue;
    if (size.value % unit.unit.value == 0) {
      return fmt::format("{} {}", size.value / unit.unit.value, unit.name);
    }
    return fmt::format("{:.1f} {}",
                       static_cast<double>(size.value) / static_cast<double>(unit.unit.value),
                       unit.name);
  }
  return fmt::format("{} B", size.value);
}

std::string FormatCount(std::uint64_t number, std::string_view noun) {
  if (number == 1) return fmt::format("1 {}", noun);
  if (noun.ends_with("y")) {
    return fmt::format("{} {}ies", number, noun.substr(0, noun.size() - 1));
  }
  return fmt::format("{} {}{}", number, noun, noun.ends_with("ch") ? "es" : "s");
}

std::string FormatTime(Nanoseconds time) {
  const auto ns = static_cast<double>(time.count());
  if (ns < 1e3) return fmt::format("{} ns", time.count());
  if (ns < 1e6) return fmt::format("{:.2f} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.2f} ms", ns / 1e6);
  return fmt::format("{:.2f} s", ns / 1e9);
}

}  // namespace mrscope
