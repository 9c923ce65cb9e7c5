// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/explain.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "mrscope/access.h"
#include "mrscope/join.h"
#include "mrscope/limits.h"
#include "mrscope/process_tree.h"
#include "mrscope/verbs.h"

namespace mrscope {
namespace {

// What a case leaves behind for the join, which waits for the last record.
struct CaseCalls {
  std::vector<UserCall> reg;
  std::vector<UserCall> dereg;
};

class Experiment {
 public:
  Experiment(const ExplainOptions& options, const ExplainHooks& hooks)
      : options_(options), hooks_(hooks), tree_(fmt::format("mrscope explain {}", getpid())) {}

  Result<ExplainReport> Run();

 private:
  Result<void> StartCapture();
  Result<void> RunCase(bool touched);
  Result<bool> RunOnce(const BufferKind& kind, ExplainCase& into, CaseCalls& calls, bool last);
  Result<void> CheckInterrupt();
  void StopCapture();
  void JoinCase(ExplainCase& done, const CaseCalls& calls);
  UserCall NewCall(Op op, const Buffer& buffer, const CallTime& time) const;

  const ExplainOptions& options_;
  const ExplainHooks& hooks_;
  ExplainReport report_;
  std::optional<Context> context_;
  std::optional<ProtectionDomain> pd_;
  ProcessTree tree_;
  std::vector<KernelRecord> records_;
  std::unique_ptr<Capture> capture_;  // its sink uses the two above
  std::vector<CaseCalls> calls_;
  unsigned done_ = 0;
};

Result<void> Experiment::StartCapture() {
  report_.level.level = Level::kUser;
  if (options_.level == Level::kUser) return {};
  CaptureOptions capture;
  capture.level = options_.level;
  capture.keys = options_.keys;
  // Drained between registrations, where it disturbs none.
  capture.reader_thread = false;
  auto started = Capture::Start(capture, [this](const CaptureEvent& event) {
    if (tree_.Consume(event)) records_.push_back(std::get<KernelRecord>(event.what));
  });
  if (!started) {
    const Error& error = started.error();
    // Keys are what was asked for then, too.
    if (options_.level || options_.keys || error.kind != ErrorKind::kPrerequisite) return error;
    report_.level.reason = error.message;
    return {};
  }
  capture_ = *std::move(started);
  report_.level = capture_->level();
  report_.capture_buffer = capture_->buffer_total();
  report_.cpus = capture_->cpus();
  // Tells this process's pid in the initial namespace, which the events carry.
  if (!capture_->Mark(fmt::format("mrscope explain {}", getpid()))) tree_.AddRoot(getpid());
  return {};
}

void Experiment::StopCapture() {
  if (!capture_) return;
  report_.lost = capture_->Stop();
  capture_.reset();
}

Result<void> Experiment::CheckInterrupt() {
  if (!hooks_.interrupted) return {};
  if (const auto signal = hooks_.interrupted()) {
    return Error{ErrorKind::kInterrupted, *signal, "interrupted"};
  }
  return {};
}

UserCall Experiment::NewCall(Op op, const Buffer& buffer, const CallTime& time) const {
  UserCall call;
  call.op = op;
  call.vtid = gettid();
  call.addr = reinterpret_cast<std::uintptr_t>(buffer.data());
  call.length = buffer.size().value;
  call.access = options_.access;
  call.start = time.start;
  call.end = time.end;
  return call;
}

// One registration and deregistration of a fresh buffer; false when the
// registration failed, which is noted in `calls`.
Result<bool> Experiment::RunOnce(const BufferKind& kind, ExplainCase& into, CaseCalls& calls,
                                 bool last) {
  auto buffer = Buffer::Create(kind, {.size = options_.size,
                                      .touched = into.touched,
                                      .read_only = options_.read_only,
                                      .unmapped = options_.unmapped});
  if (!buffer) return buffer.error();

  CallTime time;
  auto region = MemoryRegion::Register(*pd_, buffer->data(), buffer->size(), options_.access, time);
  UserCall reg = NewCall(Op::kReg, *buffer, time);
  if (!region) {
    reg.error = region.error().code;
    calls.reg.push_back(reg);
    return false;
  }
  reg.lkey = region->lkey();
  reg.rkey = region->rkey();
  calls.reg.push_back(reg);
  if (last) into.backing = buffer->ReadBacking();
  into.last_lkey = reg.lkey;
  into.last_rkey = reg.rkey;

  if (auto done = region->Deregister(time); !done) return done.error();
  UserCall dereg = NewCall(Op::kDereg, *buffer, time);
  dereg.lkey = reg.lkey;
  dereg.rkey = reg.rkey;
  calls.dereg.push_back(dereg);
  return true;
}

Result<void> Experiment::RunCase(bool touched) {
  const auto kind = FindBufferKind(options_.buffer);
  if (!kind) return kind.error();
  ExplainCase into;
  into.buffer = options_.buffer;
  into.touched = touched;
  into.size = options_.size;
  into.device = context_->name();
  into.access = options_.access;

  CaseCalls warmup;
  CaseCalls counted;
  const unsigned all = options_.warmup + options_.count;
  for (unsigned i = 0; i < all; ++i) {
    if (auto go_on = CheckInterrupt(); !go_on) return go_on;
    const bool is_warmup = i < options_.warmup;
    CaseCalls& calls = is_warmup ? warmup : counted;
    const auto done = RunOnce(**kind, into, calls, i + 1 == all);
    if (!done) return done.error();
    if (capture_) capture_->Drain();
    if (hooks_.progress) hooks_.progress(++done_, all * (options_.untouched + options_.touched));
    if (!*done) {
      // A failure is what is to be explained then, at whatever repetition.
      if (is_warmup) counted.reg.push_back(warmup.reg.back());
      break;
    }
  }
  report_.cases.push_back(std::move(into));
  calls_.push_back(std::move(counted));
  return {};
}

void Experiment::JoinCase(ExplainCase& done, const CaseCalls& calls) {
  if (report_.level.level == Level::kUser) {
    for (const UserCall& call : calls.reg) {
      done.reg.push_back(MakeUserOperation(call, JoinState::kNoRecord));
    }
    for (const UserCall& call : calls.dereg) {
      done.dereg.push_back(MakeUserOperation(call, JoinState::kNoRecord));
    }
  } else {
    done.reg = JoinOperations(calls.reg, records_);
    done.dereg = JoinOperations(calls.dereg, records_);
  }
  for (const Operation& operation : done.reg) {
    if (!operation.failed()) continue;
    FailureFacts facts;
    facts.limits = CurrentPinLimits();
    facts.mapped = !options_.unmapped;
    facts.writable = !options_.read_only;
    facts.max_mr_size = context_->max_mr_size();
    done.failure = Diagnose(operation, facts);
  }
}

Result<ExplainReport> Experiment::Run() {
  const auto kind = FindBufferKind(options_.buffer);
  if (!kind) return kind.error();
  if (!options_.unmapped) {
    if (auto fits = CheckMemory(**kind, options_.size); !fits) return fits.error();
  }
  report_.environment = CollectEnvironment();
  report_.keys = options_.keys;
  report_.count = options_.count;
  report_.warmup = options_.warmup;

  if (auto started = StartCapture(); !started) return started.error();
  auto context = Context::Open(options_.device);
  if (!context) return context.error();
  context_.emplace(*std::move(context));
  auto pd = ProtectionDomain::Allocate(*context_);
  if (!pd) return pd.error();
  pd_.emplace(*std::move(pd));

  if (options_.memlock) {
    if (auto set = SetMemlock(*options_.memlock); !set) return set.error();
  }
  if (options_.memlock || options_.drop_ipc_lock) {
    if (auto dropped = DropIpcLock(); !dropped) return dropped.error();
  }
  for (const bool touched : {false, true}) {
    if (touched ? !options_.touched : !options_.untouched) continue;
    if (auto done = RunCase(touched); !done) return done.error();
  }
  StopCapture();
  for (std::size_t i = 0; i < report_.cases.size(); ++i) JoinCase(report_.cases[i], calls_[i]);
  return std::move(report_);
}

}  // namespace

bool ExplainReport::failed() const {
  return std::any_of(cases.begin(), cases.end(),
                     [](const ExplainCase& one) { return one.failure.has_value(); });
}

Result<ExplainReport> RunExplain(const ExplainOptions& options, const ExplainHooks& hooks) {
  return Experiment(options, hooks).Run();
}

}  // namespace mrscope
