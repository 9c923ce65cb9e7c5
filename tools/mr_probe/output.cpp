// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "output.h"

#include <unistd.h>

#include <cerrno>
#include <iostream>

#include "mrscope/file.h"

namespace mr_probe {
namespace {

constexpr auto kProgressInterval = std::chrono::milliseconds(100);

}  // namespace

mrscope::Result<Output> Output::Open(const std::string& json) {
  Output output;
  output.path_ = json;
  output.on_stdout_ = json == "-";
  if (!json.empty() && !output.on_stdout_) {
    errno = 0;
    output.file_ = std::make_unique<std::ofstream>(json, std::ios::binary);
    if (!*output.file_) {
      const int error = errno;
      return mrscope::Error{mrscope::ErrorKind::kFailed, error,
                            "cannot write " + json + ": " + mrscope::ErrnoText(error)};
    }
  }
  return output;
}

mrscope::Result<void> Output::Write(const std::function<void(std::ostream&)>& json,
                                    const std::function<std::string()>& text) {
  errno = 0;
  std::ostream& out = file_ ? *file_ : std::cout;
  if (file_ || on_stdout_) {
    json(out);
    out.flush();
  }
  if (!on_stdout_) std::cout << text() << std::flush;
  if (!out || !std::cout) {
    const int error = errno != 0 ? errno : EIO;
    return mrscope::Error{mrscope::ErrorKind::kFailed, error,
                          "cannot write the report to " + (file_ ? path_ : "stdout") + ": " +
                              mrscope::ErrnoText(error)};
  }
  return {};
}

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::Show(const std::string& line) {
  if (!terminal_) return;
  const auto now = mrscope::MonotonicNow();
  if (shown_ && now - last_ < kProgressInterval) return;
  last_ = now;
  shown_ = true;
  std::cerr << "\r\033[K" << line << std::flush;
}

void Progress::Clear() {
  if (shown_) std::cerr << "\r\033[K" << std::flush;
  shown_ = false;
}

}  // namespace mr_probe
