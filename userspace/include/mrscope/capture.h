// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Takes records of all operations from the module, or from BPF programs where
// there is no module.
//
// The module's trace events come through a tracefs instance of its own, named
// mrscope-<pid>, mrscope-<pid>-2 and so on where that is taken, with -keys behind
// it where it asked for whole keys: they stay on until the last of these ends.
// Nothing of the system's own trace setup is touched, and the instance is gone
// when the capture ends. One left by a killed capture is removed by the next.
//
// BPF programs come through a ring buffer of their own; the kernel detaches them
// when this process is gone, however it ended.

#ifndef MRSCOPE_CAPTURE_H_
#define MRSCOPE_CAPTURE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "mrscope/level.h"
#include "mrscope/module.h"
#include "mrscope/record.h"
#include "mrscope/result.h"
#include "mrscope/units.h"

namespace mrscope {

struct CaptureOptions {
  // No value: by the module, else by BPF. There is none at Level::kUser.
  std::optional<Level> level;
  // Also deliver forks, execs and exits, for a ProcessTree.
  bool follow_processes = false;
  // Whole keys in the records, for as long as the capture runs.
  bool keys = false;
  // Empty the buffers in a thread of their own. Without it the caller does so
  // with Drain(), at moments when that disturbs no measurement.
  bool reader_thread = true;
  // For each CPU; no value lets the capture choose, bounded by host memory.
  std::optional<Bytes> buffer_per_cpu;
};

// Events that were not delivered.
struct CaptureLoss {
  std::uint64_t buffer = 0;             // the ring buffer was full
  std::optional<std::uint64_t> module;  // the module could not record
  std::uint64_t total() const { return buffer + module.value_or(0); }
};

class Capture {
 public:
  // Called in the order of time, in the reader thread or in Drain().
  using Sink = std::function<void(const CaptureEvent&)>;

  // kPrerequisite with a remedy: not root, no tracefs, no module, or one that
  // fails its self-test; without a module no types of the kernel (BTF), lockdown,
  // or a function that is not there.
  static Result<std::unique_ptr<Capture>> Start(const CaptureOptions& options, Sink sink);
  virtual ~Capture() = default;
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Comes back as a MarkerEvent that tells the caller's pid in the initial
  // namespace. A child may write to marker_fd() itself, before it executes a
  // program.
  virtual Result<void> Mark(const std::string& text) = 0;
  virtual int marker_fd() const = 0;

  // Delivers what is in the buffers. Events younger than a moment ago may stay
  // for the next time, to keep the order among CPUs.
  virtual void Drain() = 0;

  // Delivers the rest and removes the instance. Called by the destructor too.
  virtual CaptureLoss Stop() = 0;

  // Of all CPUs together, as the kernel granted it.
  virtual Bytes buffer_total() const = 0;
  virtual unsigned cpus() const = 0;
  const UsedLevel& level() const { return level_; }

 protected:
  explicit Capture(Level level) : level_{level, ""} {}

 private:
  UsedLevel level_;
};

// The path of tracefs where it is mounted already; it is never mounted here.
std::optional<std::string> TracefsDir();

// Removes instances of captures that are gone, and switches whole keys off where
// the last that asked for them was among these. Returns how many.
unsigned RemoveStaleInstances();

}  // namespace mrscope

#endif  // MRSCOPE_CAPTURE_H_
