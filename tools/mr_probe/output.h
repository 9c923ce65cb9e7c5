// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Where a report goes: JSON to a file or to stdout, text to stdout unless JSON
// goes there, progress to a terminal on stderr.

#ifndef MR_PROBE_OUTPUT_H_
#define MR_PROBE_OUTPUT_H_

#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "mrscope/result.h"
#include "mrscope/units.h"

namespace mr_probe {

class Output {
 public:
  // `json` is the value of --json: "" none, "-" stdout, else a file, which is
  // tried now so that a mistake shows before the work and not after it.
  static mrscope::Result<Output> Open(const std::string& json);

  bool json_on_stdout() const { return on_stdout_; }
  // Writes the JSON where it was asked for, and the text where stdout is free. A
  // file has the whole of it at once, or what it had before.
  mrscope::Result<void> Write(const std::function<void(std::ostream&)>& json,
                              const std::function<std::string()>& text);

 private:
  Output() = default;

  std::string path_;
  bool on_stdout_ = false;
};

// One line that is written over; nothing where stderr is no terminal.
class Progress {
 public:
  Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { Clear(); }

  void Show(const std::string& line);
  void Clear();

 private:
  bool terminal_;
  bool shown_ = false;
  mrscope::Nanoseconds last_{0};
};

}  // namespace mr_probe

#endif  // MR_PROBE_OUTPUT_H_
