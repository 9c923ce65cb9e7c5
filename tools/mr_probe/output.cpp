// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
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

mrscope::Result<void> WriteInto(const std::string& file, const std::string& path,
                                const std::function<void(std::ostream&)>& json) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  if (out) json(out);
  if (!out.flush()) return CannotWrite(path);
  return {};
}

// A new file of the same owner and mode beside `path`; "" where there can be
// none, or where it could not take the place: of a device, a pipe, a link.
mrscope::Result<std::string> MakeBeside(const std::string& path) {
  struct stat old {};
  if (lstat(path.c_str(), &old) != 0 || !S_ISREG(old.st_mode) || old.st_nlink > 1)
    return std::string();
  std::string file = path + ".XXXXXX";
  const mrscope::UniqueFd fd(mkostemp(file.data(), O_CLOEXEC));
  if (!fd.ok()) {
    if (errno == ENOSPC || errno == EDQUOT) return CannotWrite(path);
    return std::string();
  }
  if (fchown(fd.get(), old.st_uid, old.st_gid) != 0 ||
      fchmod(fd.get(), old.st_mode & ALLPERMS) != 0) {
    unlink(file.c_str());
    return std::string();
  }
  return file;
}

// All of it or nothing, where a new file can take the old one's place.
mrscope::Result<void> Replace(const std::string& path,
                              const std::function<void(std::ostream&)>& json) {
  const auto file = MakeBeside(path);
  if (!file) return file.error();
  errno = 0;
  if (file->empty()) return WriteInto(path, path, json);
  auto written = WriteInto(*file, path, json);
  if (written && rename(file->c_str(), path.c_str()) != 0) written = CannotWrite(path);
  if (!written) unlink(file->c_str());
  return written;
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
    if (auto written = Replace(path_, json); !written) return written;
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
