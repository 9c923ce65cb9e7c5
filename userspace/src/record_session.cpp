// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/record_session.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <memory>
#include <utility>

#include "mrscope/child.h"

namespace mrscope {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);

class Session {
 public:
  Session(const RecordOptions& options, const StopSignals& signals, const RecordHooks& hooks)
      : options_(options),
        signals_(signals),
        hooks_(hooks),
        marker_(fmt::format("mrscope record {}", getpid())),
        tree_(marker_) {}

  Result<RecordReport> Run();

 private:
  void OnEvent(const CaptureEvent& event);
  void WaitForCommand();
  void WaitForOrphans();
  bool Reap();

  const RecordOptions& options_;
  const StopSignals& signals_;
  const RecordHooks& hooks_;
  const std::string marker_;
  RecordReport report_;
  // The next two belong to the capture's thread until it is stopped.
  ProcessTree tree_;
  std::vector<KernelRecord> records_;
  std::atomic<std::size_t> record_count_{0};
  pid_t command_ = -1;
  bool command_ended_ = false;
  std::unique_ptr<Capture> capture_;  // last: its sink uses what is above
};

void Session::OnEvent(const CaptureEvent& event) {
  if (!tree_.Consume(event)) return;
  records_.push_back(std::get<KernelRecord>(event.what));
  record_count_ = records_.size();
  if (hooks_.on_record) hooks_.on_record(records_.back());
}

// Collects everyone who has ended; false when no child is left.
bool Session::Reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid == 0) return true;
    if (pid < 0) return errno != ECHILD;
    if (pid != command_) continue;
    command_ended_ = true;
    if (WIFEXITED(status)) report_.exit.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) report_.exit.signal = WTERMSIG(status);
  }
}

void Session::WaitForCommand() {
  for (Reap(); !command_ended_; Reap()) {
    const auto arrived = signals_.Wait(kTick);
    if (hooks_.progress) hooks_.progress(record_count_);
    if (!arrived) continue;
    report_.interrupted = true;
    // Ctrl-C at the terminal has reached the command by itself.
    if (!arrived->from_terminal) kill(command_, arrived->number);
  }
}

// A wait that returns for a process says that its files are closed, so the
// deregistrations of its exit have run.
void Session::WaitForOrphans() {
  const Nanoseconds limit = MonotonicNow() + options_.linger;
  while (Reap() && MonotonicNow() < limit) {
    if (const auto arrived = signals_.Wait(kTick)) {
      report_.interrupted = true;
      return;
    }
  }
}

Result<RecordReport> Session::Run() {
  report_.environment = CollectEnvironment();
  report_.keys = options_.keys;
  report_.command = options_.command;
  AdoptOrphans();

  CaptureOptions capture;
  capture.level = options_.level;
  capture.follow_processes = true;
  capture.keys = options_.keys;
  capture.buffer_per_cpu = options_.buffer_per_cpu;
  auto started = Capture::Start(capture, [this](const CaptureEvent& event) { OnEvent(event); });
  if (!started) return started.error();
  capture_ = *std::move(started);
  report_.level = capture_->level();
  report_.capture_buffer = capture_->buffer_total();
  report_.cpus = capture_->cpus();

  const Nanoseconds begin = MonotonicNow();
  const auto command = StartChild(options_.command, {.stdout_to_stderr = options_.stdout_to_stderr,
                                                     .marker_fd = capture_->marker_fd(),
                                                     .marker = marker_,
                                                     .signal_mask = signals_.previous()});
  if (command) {
    command_ = *command;
    WaitForCommand();
    WaitForOrphans();
  } else {
    report_.exit.why_not_started = command.error().message;
  }
  report_.elapsed = MonotonicNow() - begin;
  report_.lost = capture_->Stop();
  capture_.reset();

  report_.records = std::move(records_);
  report_.processes = tree_.Processes();
  // A thread is not worth a word of its own beside its process.
  const auto alive = tree_.Alive();
  for (const TreeProcess& process : report_.processes) {
    if (!process.exited) report_.alive.push_back(process.pid);
  }
  if (report_.alive.empty()) report_.alive = alive;
  return std::move(report_);
}

}  // namespace

Result<RecordReport> RunRecord(const RecordOptions& options, const StopSignals& signals,
                               const RecordHooks& hooks) {
  return Session(options, signals, hooks).Run();
}

}  // namespace mrscope
