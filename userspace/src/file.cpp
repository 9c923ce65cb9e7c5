// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

namespace mrscope {

void UniqueFd::Reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Result<std::string> ReadFile(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.ok()) {
    const int error = errno;
    return Error{ErrorKind::kFailed, error,
                 fmt::format("cannot open {}: {}", path, ErrnoText(error))};
  }
  std::string text;
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t got = read(fd.get(), chunk.data(), chunk.size());
    if (got == 0) return text;
    if (got < 0) {
      const int error = errno;
      if (error == EINTR) continue;
      return Error{ErrorKind::kFailed, error,
                   fmt::format("cannot read {}: {}", path, ErrnoText(error))};
    }
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

Result<void> WriteFile(const std::string& path, std::string_view text) {
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_TRUNC));
  if (!fd.ok() || write(fd.get(), text.data(), text.size()) < 0) {
    const int error = errno;
    return Error{ErrorKind::kFailed, error,
                 fmt::format("cannot write {}: {}", path, ErrnoText(error))};
  }
  return {};
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    const std::string_view part = text.substr(0, end);
    if (!part.empty()) parts.push_back(part);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

std::optional<std::uint64_t> ParseNumber(std::string_view text) {
  text = Trim(text);
  std::uint64_t number = 0;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::string> ReadLine(const std::string& path) {
  const auto text = ReadFile(path);
  if (!text) return std::nullopt;
  return std::string(Trim(std::string_view(*text).substr(0, text->find('\n'))));
}

std::string ChosenWord(std::string_view line) {
  const auto open = line.find('[');
  const auto close = line.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::string(Trim(line));
  }
  return std::string(line.substr(open + 1, close - open - 1));
}

std::string ErrnoName(int error) {
  const char* name = strerrorname_np(error);
  return name != nullptr ? name : std::to_string(error);
}

std::string ErrnoText(int error) { return std::generic_category().message(error); }

}  // namespace mrscope
