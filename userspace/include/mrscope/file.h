// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Small files of sysfs, procfs and tracefs.

#ifndef MRSCOPE_FILE_H_
#define MRSCOPE_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mrscope/result.h"

namespace mrscope {

// Owns a file descriptor; -1 is none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  void Reset();

 private:
  int fd_ = -1;
};

// The whole file; the error carries the errno of open or read.
Result<std::string> ReadFile(const std::string& path);
// Writes `text` with one write(2), as sysfs wants it.
Result<void> WriteFile(const std::string& path, std::string_view text);
bool Exists(const std::string& path);

std::string_view Trim(std::string_view text);
std::vector<std::string_view> Split(std::string_view text, char separator);
std::optional<std::uint64_t> ParseNumber(std::string_view text);
// First line without its newline; nullopt where the file cannot be read.
std::optional<std::string> ReadLine(const std::string& path);
// The chosen word of a line like "always [madvise] never"; else the line.
std::string ChosenWord(std::string_view line);
// "EINVAL"; the number as text where it has no name.
std::string ErrnoName(int error);
// strerror without its shared buffer.
std::string ErrnoText(int error);

}  // namespace mrscope

#endif  // MRSCOPE_FILE_H_
