// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "output.h"

#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iostream>

#include "mrscope/file.h"

namespace mr_probe {
namespace {

constexpr auto kProgressInterval = std::chrono::milliseconds(100);

mrscope::Error CannotWrite(const std::string& path) {
  const int error = errno != 0 ? errno : EIO;
  return {mrscope::ErrorKind::kFailed, error,
          "cannot write " + path + ": " + mrscope::ErrnoText(error)};
}

}  // namespace

mrscope::Result<Output> Output::Open(const std::string& json) {
  Output output;
  output.path_ = json;
  output.on_stdout_ = json == "-";
  if (!json.empty() && !output.on_stdout_) {
    errno = 0;
    // What an earlier run wrote there stays until there is something new.
    const std::ofstream probe(json, std::ios::binary | std::ios::app);
    if (!probe) return CannotWrite(json);
  }
  return output;
}

mrscope::Result<void> Output::Write(const std::function<void(std::ostream&)>& json,
                                    const std::function<std::string()>& text) {
  errno = 0;
  if (on_stdout_) {
    json(std::cout);
  } else if (!path_.empty()) {
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    json(file);
    if (!file.flush()) return CannotWrite(path_);
  }
  if (!on_stdout_) std::cout << text();
  if (!std::cout.flush()) return CannotWrite("stdout");
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
