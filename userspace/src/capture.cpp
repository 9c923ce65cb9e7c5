// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/capture.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// kbuffer.h has no such guard of its own.
extern "C" {
#include <kbuffer.h>
}

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "bpf_capture.h"
#include "mrscope/decode.h"
#include "mrscope/environment.h"
#include "mrscope/file.h"
#include "tracefs_raw.h"

namespace mrscope {
namespace {

constexpr std::string_view kInstancePrefix = "mrscope-";
// Of a capture with a share in whole keys being on: who removes the last one
// switches them off.
constexpr std::string_view kKeysSuffix = "-keys";

// The reader looks at the buffers this often, and at once again after finding
// plenty: 8 MiB hold some 12000 records, a second of eight busy threads.
constexpr auto kPollInterval = std::chrono::milliseconds(10);
constexpr Bytes kBufferPerCpu = {8 * kMiB.value};
constexpr Bytes kBufferPerCpuMin = {256 * kKiB.value};
constexpr Bytes kBufferTotalMax = {256 * kMiB.value};

struct WantedEvent {
  const char* system;
  const char* name;
};
constexpr WantedEvent kModuleEvents[] = {{"mrscope", "mr_reg"}, {"mrscope", "mr_dereg"}};
constexpr WantedEvent kTreeEvents[] = {{"sched", "sched_process_fork"},
                                       {"sched", "sched_process_exec"},
                                       {"sched", "sched_process_exit"}};
constexpr WantedEvent kMarkerEvent = {"ftrace", "print"};

// 8 MiB a CPU, less where a host of many CPUs or little memory would feel it.
Bytes ChooseBuffer(unsigned cpus) {
  const auto pages = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES));
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t total = std::min(kBufferTotalMax.value, pages * page / 16);
  return {std::clamp(total / std::max(cpus, 1U), kBufferPerCpuMin.value, kBufferPerCpu.value)};
}

// mrscope-PID, mrscope-PID-N, and each with -keys.
bool IsCaptureName(std::string_view name) {
  if (!name.starts_with(kInstancePrefix)) return false;
  name.remove_prefix(kInstancePrefix.size());
  if (name.ends_with(kKeysSuffix)) name.remove_suffix(kKeysSuffix.size());
  return !name.empty() && name.front() != '-' &&
         name.find_first_not_of("0123456789-") == std::string_view::npos;
}

// The captures' instances of tracefs, for all pid namespaces the same. Locked,
// no capture comes or goes: each makes its instance and opens it to read under
// the lock, so what nobody has open then is of a capture that is gone.
class LockedInstances {
 public:
  static Result<LockedInstances> Lock(const std::string& tracing_dir);

  // Removes what is left over, and the caller's own if it has closed it.
  // Switches whole keys off with the last capture that asked for them.
  unsigned RemoveUnread();
  bool AnyWithKeys() const;
  // Gives the new one's path.
  Result<std::string> Make(bool with_keys);

 private:
  LockedInstances(std::string dir, UniqueFd lock) : dir_(std::move(dir)), lock_(std::move(lock)) {}
  std::vector<std::string> Names() const;

  std::string dir_;
  UniqueFd lock_;
};

Result<LockedInstances> LockedInstances::Lock(const std::string& tracing_dir) {
  std::string dir = tracing_dir + "/instances";
  UniqueFd fd(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int locked = -1;
  do {
    locked = fd.ok() ? flock(fd.get(), LOCK_EX) : -1;
  } while (locked != 0 && errno == EINTR);
  if (locked != 0) {
    const int error = errno;
    return Error{ErrorKind::kPrerequisite, error,
                 fmt::format("cannot lock {}: {}; run as root", dir, ErrnoText(error))};
  }
  return LockedInstances(std::move(dir), std::move(fd));
}

std::vector<std::string> LockedInstances::Names() const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir_, error)) {
    std::string name = entry.path().filename();
    if (IsCaptureName(name)) names.push_back(std::move(name));
  }
  return names;
}

bool LockedInstances::AnyWithKeys() const {
  const auto names = Names();
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name.ends_with(kKeysSuffix); });
}

unsigned LockedInstances::RemoveUnread() {
  unsigned removed = 0;
  bool keys_removed = false;
  for (const std::string& name : Names()) {
    // Refused where somebody has it open.
    if (rmdir((dir_ + "/" + name).c_str()) != 0) continue;
    ++removed;
    keys_removed |= name.ends_with(kKeysSuffix);
  }
  // Nobody can be told of a failure, and the module may be gone by now.
  if (keys_removed && !AnyWithKeys()) (void)Module().SwitchKeys(false).ok();
  return removed;
}

Result<std::string> LockedInstances::Make(bool with_keys) {
  // A process has several captures, or another pid namespace has the same pid.
  for (unsigned i = 1;; ++i) {
    std::string path =
        fmt::format("{}/{}{}{}{}", dir_, kInstancePrefix, getpid(),
                    i > 1 ? fmt::format("-{}", i) : "", with_keys ? kKeysSuffix : "");
    if (mkdir(path.c_str(), 0750) == 0) return path;
    const int error = errno;
    if (error == EEXIST) continue;
    return Error{ErrorKind::kPrerequisite, error,
                 fmt::format("cannot make a tracefs instance in {}: {}{}", dir_, ErrnoText(error),
                             LockdownLevel() == "confidentiality"
                                 ? "; lockdown keeps tracefs closed: boot without "
                                   "lockdown=confidentiality"
                                 : "")};
  }
}

struct CpuClose {
  void operator()(tracefs_cpu* cpu) const { tracefs_cpu_close(cpu); }
};
struct KbufferFree {
  void operator()(kbuffer* buffer) const { kbuffer_free(buffer); }
};

class TracefsCapture final : public Capture {
 public:
  TracefsCapture(const CaptureOptions& options, Sink sink)
      : Capture(Level::kModule), options_(options), sink_(std::move(sink)) {}
  TracefsCapture(const TracefsCapture&) = delete;
  TracefsCapture& operator=(const TracefsCapture&) = delete;
  ~TracefsCapture() override { TracefsCapture::Stop(); }

  Result<void> Open();

  Result<void> Mark(const std::string& text) override;
  int marker_fd() const override { return marker_.get(); }
  void Drain() override;
  CaptureLoss Stop() override;
  Bytes buffer_total() const override { return buffer_total_; }
  unsigned cpus() const override { return static_cast<unsigned>(readers_.size()); }

 private:
  struct Reader {
    unsigned cpu = 0;
    std::unique_ptr<tracefs_cpu, CpuClose> file;
    std::uint64_t missed = 0;  // as the sub-buffers themselves say
  };

  std::string InstanceFile(const std::string& name) const { return instance_dir_ + "/" + name; }
  Result<void> Put(const std::string& file, const std::string& text);
  Result<void> AddEvent(const WantedEvent& wanted);
  Result<void> EnableEvent(const WantedEvent& wanted);
  Result<void> MakeInstance();
  Result<void> OpenReaders();
  void RemoveInstance();
  bool ReadCpu(Reader& reader, std::uint64_t until_ns);
  bool ReadAll(bool last);
  void Deliver(std::uint64_t until_ns);
  void Run();
  std::uint64_t BufferLoss();

  CaptureOptions options_;
  Sink sink_;
  Module module_;
  std::string tracing_dir_;
  std::string instance_dir_;
  UniqueFd hold_;
  UniqueFd marker_;
  EventDecoder decoder_;
  std::vector<Reader> readers_;
  std::unique_ptr<kbuffer, KbufferFree> kbuffer_;
  std::vector<unsigned char> subbuffer_;
  std::vector<CaptureEvent> pending_;
  std::uint64_t complete_until_ns_ = 0;
  std::optional<std::uint64_t> module_lost_before_;
  Bytes buffer_total_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool stopped_ = false;
  CaptureLoss loss_;
  std::thread thread_;
};

Result<void> TracefsCapture::Put(const std::string& file, const std::string& text) {
  return WriteFile(InstanceFile(file), text);
}

Result<void> TracefsCapture::AddEvent(const WantedEvent& wanted) {
  const std::string path =
      fmt::format("{}/events/{}/{}/format", tracing_dir_, wanted.system, wanted.name);
  const auto format = ReadFile(path);
  if (!format) {
    return Error{ErrorKind::kPrerequisite, format.error().code,
                 fmt::format("{}; this kernel or mrscope.ko does not offer the trace event {}:{}",
                             format.error().message, wanted.system, wanted.name)};
  }
  return decoder_.AddFormat(wanted.system, *format);
}

Result<void> TracefsCapture::EnableEvent(const WantedEvent& wanted) {
  return Put(fmt::format("events/{}/{}/enable", wanted.system, wanted.name), "1");
}

Result<void> TracefsCapture::Open() {
  if (!module_.loaded()) {
    return Error{ErrorKind::kPrerequisite, ENODEV,
                 fmt::format("mrscope.ko is not loaded: \"{}\" loads it", LoadCommand())};
  }
  if (geteuid() != 0) {
    return Error{ErrorKind::kPrerequisite, EPERM,
                 "no permission to read trace events: run as root"};
  }
  const auto tracing_dir = TracefsDir();
  if (!tracing_dir) {
    return Error{ErrorKind::kPrerequisite, ENOENT,
                 "tracefs is not mounted: \"mount -t tracefs none /sys/kernel/tracing\" mounts it"};
  }
  tracing_dir_ = *tracing_dir;
  auto hold = module_.Hold();
  if (!hold) return hold.error();
  hold_ = *std::move(hold);
  const auto status = module_.ReadStatus();
  if (!status) return status.error();
  if (status->enabled == false) {
    return Error{ErrorKind::kPrerequisite, 0,
                 fmt::format("mrscope.ko is disabled: echo 1 > {}/enabled", module_.debugfs_dir())};
  }
  if (auto passed = module_.CheckSelfTest(); !passed) return passed;
  module_lost_before_ = status->lost;
  if (auto made = MakeInstance(); !made) return made;
  for (const WantedEvent& event : kModuleEvents) {
    if (auto done = AddEvent(event); !done) return done;
  }
  if (auto done = AddEvent(kMarkerEvent); !done) return done;
  marker_ = UniqueFd(open(InstanceFile("trace_marker").c_str(), O_WRONLY | O_CLOEXEC));
  if (options_.follow_processes) {
    for (const WantedEvent& event : kTreeEvents) {
      if (auto done = AddEvent(event); !done) return done;
      if (auto done = EnableEvent(event); !done) return done;
    }
  }
  for (const WantedEvent& event : kModuleEvents) {
    if (auto done = EnableEvent(event); !done) return done;
  }
  if (options_.reader_thread) thread_ = std::thread([this] { Run(); });
  return {};
}

Result<void> TracefsCapture::MakeInstance() {
  auto instances = LockedInstances::Lock(tracing_dir_);
  if (!instances) return instances.error();
  instances->RemoveUnread();
  // On without a capture that asked for them, they were switched on by hand, and
  // stay on.
  const bool with_keys = options_.keys && (module_.keys() != true || instances->AnyWithKeys());
  auto made = instances->Make(with_keys);
  if (!made) return made.error();
  instance_dir_ = *std::move(made);

  const auto header = ReadFile(InstanceFile("events/header_page"));
  if (!header) return header.error();
  if (auto done = decoder_.AddHeaderPage(*header); !done) return done;
  subbuffer_.resize(decoder_.subbuffer_size().value);
  if (auto done = Put("trace_clock", "mono"); !done) return done;
  if (auto done = OpenReaders(); !done) return done;
  if (with_keys) return module_.SwitchKeys(true);
  return {};
}

Result<void> TracefsCapture::OpenReaders() {
  std::vector<unsigned> cpus;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(InstanceFile("per_cpu"), error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("cpu")) continue;
    if (const auto cpu = ParseNumber(std::string_view(name).substr(3))) {
      cpus.push_back(static_cast<unsigned>(*cpu));
    }
  }
  std::sort(cpus.begin(), cpus.end());

  const Bytes wanted =
      options_.buffer_per_cpu.value_or(ChooseBuffer(static_cast<unsigned>(cpus.size())));
  if (auto done = Put("buffer_size_kb", std::to_string(wanted.value / kKiB.value)); !done) {
    return Error{ErrorKind::kFailed, done.error().code,
                 fmt::format("{}; a smaller --buffer-size asks for less", done.error().message)};
  }
  const auto granted = ReadLine(InstanceFile("buffer_total_size_kb"));
  // "N (expanded: M)" before the first use.
  buffer_total_ = Bytes{
      ParseNumber(std::string_view(granted.value_or("")).substr(0, granted.value_or("").find(' ')))
          .value_or(0) *
      kKiB.value};

  for (const unsigned cpu : cpus) {
    Reader reader;
    reader.cpu = cpu;
    // Not tracefs_cpu_open(): a recorded program would inherit the file, and
    // keep the instance busy for as long as it lives.
    const std::string path = InstanceFile(fmt::format("per_cpu/cpu{}/trace_pipe_raw", cpu));
    const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
      reader.file.reset(tracefs_cpu_alloc_fd(fd, static_cast<int>(subbuffer_.size()), true));
    }
    if (!reader.file) {
      const int code = errno;
      if (fd >= 0) close(fd);
      return Error{ErrorKind::kFailed, code,
                   fmt::format("cannot open {}: {}", path, ErrnoText(code))};
    }
    readers_.push_back(std::move(reader));
  }
  kbuffer_.reset(kbuffer_alloc(KBUFFER_LSIZE_SAME_AS_HOST, KBUFFER_ENDIAN_SAME_AS_HOST));
  if (!kbuffer_ || readers_.empty()) {
    return Error{ErrorKind::kFailed, 0, "cannot read the trace buffers of tracefs"};
  }
  return {};
}

// Takes one sub-buffer after the other until the CPU has none, or until its
// events are younger than `until_ns`: a busy CPU would never let go.
bool TracefsCapture::ReadCpu(Reader& reader, std::uint64_t until_ns) {
  bool any = false;
  for (;;) {
    const int got = tracefs_cpu_read(reader.file.get(), subbuffer_.data(), true);
    if (got <= 0) return any;
    if (kbuffer_load_subbuffer(kbuffer_.get(), subbuffer_.data()) < 0) return any;
    const int missed = kbuffer_missed_events(kbuffer_.get());
    // Negative: some, but it is not known how many.
    if (missed != 0) reader.missed += static_cast<std::uint64_t>(std::max(missed, 1));

    unsigned long long timestamp = 0;
    for (void* data = kbuffer_read_event(kbuffer_.get(), &timestamp); data != nullptr;
         data = kbuffer_next_event(kbuffer_.get(), &timestamp)) {
      const int size = kbuffer_event_size(kbuffer_.get());
      const std::span bytes(static_cast<const std::byte*>(data), static_cast<std::size_t>(size));
      if (auto event = decoder_.Decode(timestamp, bytes)) pending_.push_back(*std::move(event));
    }
    any = true;
    if (timestamp > until_ns) return any;
  }
}

void TracefsCapture::Deliver(std::uint64_t until_ns) {
  const auto end = std::partition(pending_.begin(), pending_.end(),
                                  [&](const auto& event) { return event.timestamp_ns < until_ns; });
  std::stable_sort(pending_.begin(), end,
                   [](const auto& a, const auto& b) { return a.timestamp_ns < b.timestamp_ns; });
  for (auto event = pending_.begin(); event != end; ++event) sink_(*event);
  pending_.erase(pending_.begin(), end);
}

// Everything that happened before a pass began is in its hands when it ends,
// less what was being written at that very moment: hence the pass before.
bool TracefsCapture::ReadAll(bool last) {
  const auto pass_start = static_cast<std::uint64_t>(MonotonicNow().count());
  bool any = false;
  for (Reader& reader : readers_) any |= ReadCpu(reader, last ? UINT64_MAX : pass_start);
  Deliver(last ? UINT64_MAX : complete_until_ns_);
  complete_until_ns_ = pass_start;
  return any;
}

void TracefsCapture::Run() {
  // Best effort: where the CPUs are busy, a starved reader loses events.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), -20);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    ReadAll(false);
    wake_.wait_for(lock, kPollInterval, [this] { return stopping_; });
  }
}

void TracefsCapture::Drain() {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  ReadAll(false);
}

Result<void> TracefsCapture::Mark(const std::string& text) {
  if (write(marker_.get(), text.data(), text.size()) < 0) {
    const int error = errno;
    return Error{ErrorKind::kFailed, error,
                 fmt::format("cannot write to trace_marker: {}", ErrnoText(error))};
  }
  return {};
}

// Overwritten, and refused for want of room. What the sub-buffers say about
// missed events is the same loss seen from the other side.
std::uint64_t TracefsCapture::BufferLoss() {
  std::uint64_t lost = 0;
  std::uint64_t missed = 0;
  for (const Reader& reader : readers_) {
    missed += reader.missed;
    const auto stats = ReadFile(InstanceFile(fmt::format("per_cpu/cpu{}/stats", reader.cpu)));
    if (!stats) continue;
    for (const std::string_view line : Split(*stats, '\n')) {
      for (const std::string_view key : {"overrun: ", "commit overrun: ", "dropped events: "}) {
        if (line.starts_with(key)) lost += ParseNumber(line.substr(key.size())).value_or(0);
      }
    }
  }
  return std::max(lost, missed);
}

void TracefsCapture::RemoveInstance() {
  if (instance_dir_.empty()) return;
  auto instances = LockedInstances::Lock(tracing_dir_);
  readers_.clear();
  if (instances) instances->RemoveUnread();
}

CaptureLoss TracefsCapture::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  if (stopped_) return loss_;
  stopped_ = true;
  if (!instance_dir_.empty()) {
    (void)Put("tracing_on", "0").ok();
    ReadAll(true);
    loss_.buffer = BufferLoss();
    const auto status = module_.ReadStatus();
    if (status && status->lost && module_lost_before_) {
      // A reset of the module's counters meanwhile starts them from 0 again.
      loss_.module = *status->lost - std::min(*status->lost, *module_lost_before_);
    }
  }
  marker_.Reset();
  RemoveInstance();
  hold_.Reset();
  return loss_;
}

}  // namespace

Result<std::unique_ptr<Capture>> Capture::Start(const CaptureOptions& options, Sink sink) {
  if (options.level == Level::kBpf) return StartBpfCapture(options, std::move(sink));
  auto capture = std::make_unique<TracefsCapture>(options, sink);
  const auto opened = capture->Open();
  if (opened) return std::unique_ptr<Capture>(std::move(capture));
  capture.reset();
  const Error& why = opened.error();
  if (options.level || why.kind != ErrorKind::kPrerequisite) return why;

  auto bpf = StartBpfCapture(options, std::move(sink));
  if (!bpf) {
    return Error{ErrorKind::kPrerequisite, why.code,
                 fmt::format("{}; nor is there BPF: {}", why.message, bpf.error().message)};
  }
  (*bpf)->level_.reason = why.message;
  return bpf;
}

std::optional<std::string> TracefsDir() {
  for (const char* dir : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    if (Exists(std::string(dir) + "/instances")) return dir;
  }
  return std::nullopt;
}

unsigned RemoveStaleInstances() {
  const auto tracing_dir = TracefsDir();
  if (!tracing_dir) return 0;
  auto instances = LockedInstances::Lock(*tracing_dir);
  return instances ? instances->RemoveUnread() : 0;
}

}  // namespace mrscope
