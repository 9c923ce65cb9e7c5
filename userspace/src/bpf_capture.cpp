// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A capture without mrscope.ko: BPF programs at the same boundaries
// (userspace/bpf), and their ring buffer. Everything is detached when it ends,
// by the kernel itself should this process be killed.

#include "bpf_capture.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "bpf_account.h"
#include "bpf_object.h"
#include "mrscope/capture.h"
#include "mrscope/environment.h"
#include "mrscope/file.h"
#include "record.h"

namespace mrscope {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(10);
constexpr Bytes kBufferTotal = {16 * kMiB.value};
constexpr unsigned kDriverPrograms = 8;
constexpr int kCostRuns = 32;

// A program, and the names of its function, the first that is there is taken.
struct Attachment {
  std::string program;
  std::vector<std::string> functions;
  unsigned boundary;
};

const std::vector<Attachment>& CoreAttachments() {
  static const std::vector<Attachment> kAll = {
      // Inner boundaries first: the last one attached completes a record.
      {"virt_dma_return", {"ib_dma_virt_map_sg"}, MRS_BPF_DMA},
      {"virt_dma_call", {"ib_dma_virt_map_sg"}, MRS_BPF_DMA},
      {"dma_return", {"dma_map_sgtable"}, MRS_BPF_DMA},
      {"dma_call", {"dma_map_sgtable"}, MRS_BPF_DMA},
      {"pin_return", {"pin_user_pages_fast"}, MRS_BPF_PIN},
      {"pin_call", {"pin_user_pages_fast"}, MRS_BPF_PIN},
      {"umem", {"ib_umem_get", "__ib_umem_get_va"}, MRS_BPF_UMEM},
      {"key", {"rxe_alloc", "__rxe_add_to_pool"}, MRS_BPF_KEY},
      {"release_return", {"__ib_umem_release"}, MRS_BPF_RELEASE},
      {"release_call", {"__ib_umem_release"}, MRS_BPF_RELEASE},
      {"dereg_return", {"ib_dereg_mr_user"}, MRS_BPF_DEREG},
      {"dereg_call", {"ib_dereg_mr_user"}, MRS_BPF_DEREG},
      {"destroy", {"uverbs_destroy_uobject"}, MRS_BPF_DESTROY},
      {"reg_return", {"ib_uverbs_reg_mr"}, MRS_BPF_ROOT},
      {"reg_call", {"ib_uverbs_reg_mr"}, MRS_BPF_ROOT},
      {"rereg_return", {"ib_uverbs_rereg_mr"}, MRS_BPF_ROOT},
      {"rereg_call", {"ib_uverbs_rereg_mr"}, MRS_BPF_ROOT},
      {"method_return", {"ib_uverbs_handler_UVERBS_METHOD_REG_MR"}, MRS_BPF_ROOT},
      {"method_call", {"ib_uverbs_handler_UVERBS_METHOD_REG_MR"}, MRS_BPF_ROOT},
      {"dmabuf_return", {"ib_uverbs_handler_UVERBS_METHOD_REG_DMABUF_MR"}, MRS_BPF_ROOT},
      {"dmabuf_call", {"ib_uverbs_handler_UVERBS_METHOD_REG_DMABUF_MR"}, MRS_BPF_ROOT},
      {"ioctl", {"ib_uverbs_ioctl"}, MRS_BPF_IOCTL},
  };
  return kAll;
}

// The drivers' operations by their names, since BPF takes no addresses: each
// driver calls them so, with words of its own before.
struct DriverFunctions {
  std::string module;
  std::string reg;
  std::string dereg;
};

std::vector<DriverFunctions> FindDrivers(std::string_view kallsyms) {
  std::map<std::string, std::string, std::less<>> modules;
  for (const std::string_view line : Split(kallsyms, '\n')) {
    const auto words = Split(line, ' ');
    if (words.size() < 3 || (words[1] != "t" && words[1] != "T")) continue;
    // "name\t[module]"
    const auto name = Split(words[2], '\t');
    const std::string_view module = name.size() > 1 ? name[1] : "";
    if (module.size() < 2) continue;
    if (name[0].ends_with("_reg_user_mr") || name[0].ends_with("_dereg_mr") ||
        name[0] == "efa_reg_mr") {
      modules.emplace(name[0], module.substr(1, module.size() - 2));
    }
  }
  std::vector<DriverFunctions> drivers;
  for (const auto& [name, module] : modules) {
    for (const std::string_view suffix : {"_reg_user_mr", "_reg_mr"}) {
      if (!name.ends_with(suffix)) continue;
      const std::string dereg = name.substr(0, name.size() - suffix.size()) + "_dereg_mr";
      if (modules.contains(dereg)) drivers.push_back({module, name, dereg});
      break;
    }
  }
  return drivers;
}

struct BtfFree {
  void operator()(btf* types) const { btf__free(types); }
};

// How many arguments a function of a module has; `kernel` is the kernel's types.
std::optional<std::uint32_t> CountArguments(btf* kernel, const std::string& module,
                                            const std::string& function) {
  const std::unique_ptr<btf, BtfFree> types(btf__load_module_btf(module.c_str(), kernel));
  if (!types) return std::nullopt;
  const int id = btf__find_by_name_kind(types.get(), function.c_str(), BTF_KIND_FUNC);
  if (id < 0) return std::nullopt;
  const btf_type* type = btf__type_by_id(types.get(), static_cast<__u32>(id));
  return btf_vlen(btf__type_by_id(types.get(), type->type));
}

// The first sentence that libbpf has said since Forget().
class LibbpfMessages {
 public:
  static void Listen() { libbpf_set_print(&Keep); }
  static void Forget() { First().clear(); }
  static std::string& First() {
    static std::string first;
    return first;
  }

 private:
  static int Keep(libbpf_print_level level, const char* format, va_list arguments) {
    if (level != LIBBPF_WARN || !First().empty()) return 0;
    std::array<char, 512> line{};
    const int length = vsnprintf(line.data(), line.size(), format, arguments);
    First() = Trim(line.data());
    return length;
  }
};

// One after another.
const std::vector<Attachment> kCostAttachments = {
    {"cost_begin", {"bpf_fentry_test1"}, 0}, {"cost_entry", {"bpf_fentry_test2"}, 0},
    {"cost_next", {"bpf_fentry_test3"}, 0},  {"cost_end", {"bpf_fentry_test4"}, 0},
    {"cost_after", {"bpf_fentry_test5"}, 0},
};

struct ObjectClose {
  void operator()(bpf_object* object) const { bpf_object__close(object); }
};
struct LinkDestroy {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
struct RingFree {
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};

class BpfCapture final : public Capture {
 public:
  BpfCapture(const CaptureOptions& options, Sink sink)
      : Capture(Level::kBpf), options_(options), sink_(std::move(sink)) {
    facts_.keys = options.keys;
  }
  BpfCapture(const BpfCapture&) = delete;
  BpfCapture& operator=(const BpfCapture&) = delete;
  ~BpfCapture() override { BpfCapture::Stop(); }

  Result<void> Open();

  Result<void> Mark(const std::string& text) override;
  int marker_fd() const override { return marker_write_.get(); }
  void Drain() override;
  CaptureLoss Stop() override;
  Bytes buffer_total() const override { return buffer_total_; }
  unsigned cpus() const override { return static_cast<unsigned>(libbpf_num_possible_cpus()); }

 private:
  bool Choose(const Attachment& wanted);
  void ChooseDrivers();
  Result<void> Load();
  Result<void> Attach(const std::vector<std::string>& programs);
  Result<void> MeasureCost();
  mrs_bpf_shared ReadShared() const;
  std::uint64_t Lost() const;
  void OnEvent(const mrs_bpf_event& event);
  void Run();

  CaptureOptions options_;
  Sink sink_;
  std::unique_ptr<bpf_object, ObjectClose> object_;
  std::vector<std::string> chosen_;       // programs, in the order of attaching
  std::vector<std::string> cost_chosen_;  // those that measure the cost of looking
  std::vector<std::unique_ptr<bpf_link, LinkDestroy>> links_;
  std::unique_ptr<ring_buffer, RingFree> ring_;
  BpfFacts facts_;
  UniqueFd marker_read_;
  UniqueFd marker_write_;
  std::map<std::uint32_t, std::string> devices_;
  std::set<pid_t> own_children_;
  pid_t own_pid_ = 0;  // in the initial namespace
  std::uint64_t seq_ = 0;
  Bytes buffer_total_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool stopped_ = false;
  CaptureLoss loss_;
  std::thread thread_;
};

// The first of the function's names that the kernel's types know.
bool BpfCapture::Choose(const Attachment& wanted) {
  bpf_program* program = bpf_object__find_program_by_name(object_.get(), wanted.program.c_str());
  for (const std::string& function : wanted.functions) {
    if (bpf_program__set_attach_target(program, 0, function.c_str()) != 0) continue;
    bpf_program__set_autoload(program, true);
    return true;
  }
  return false;
}

void BpfCapture::ChooseDrivers() {
  const auto kallsyms = ReadFile("/proc/kallsyms");
  const std::unique_ptr<btf, BtfFree> kernel(btf__load_vmlinux_btf());
  if (!kernel) return;
  unsigned used = 0;
  for (const DriverFunctions& driver : FindDrivers(kallsyms ? *kallsyms : "")) {
    if (used == kDriverPrograms) break;
    const auto arguments = CountArguments(kernel.get(), driver.module, driver.reg);
    if (!arguments) continue;
    // The same for all drivers of a kernel.
    bpf_map__set_initial_value(bpf_object__find_map_by_name(object_.get(), ".rodata"), &*arguments,
                               sizeof(*arguments));

    const std::vector<Attachment> wanted = {
        {fmt::format("driver_return_{}", used), {driver.reg}, MRS_BPF_DRIVER},
        {fmt::format("driver_{}", used), {driver.reg}, MRS_BPF_DRIVER},
        {fmt::format("dereg_driver_{}", used), {driver.dereg}, MRS_BPF_DRIVER}};
    for (const Attachment& one : wanted) {
      if (Choose(one)) chosen_.push_back(one.program);
    }
    facts_.attached.set(MRS_BPF_DRIVER);
    ++used;
  }
}

Result<void> BpfCapture::Load() {
  LibbpfMessages::Listen();
  LibbpfMessages::Forget();
  bpf_object_open_opts open_options{};
  open_options.sz = sizeof(open_options);
  open_options.object_name = "mrscope";
  object_.reset(bpf_object__open_mem(BpfObject().data(), BpfObject().size(), &open_options));
  if (!object_) {
    return Error{ErrorKind::kPrerequisite, errno,
                 "libbpf cannot read mrscope's programs: " + LibbpfMessages::First()};
  }
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object_.get()) bpf_program__set_autoload(program, false);

  ChooseDrivers();
  for (const Attachment& wanted : CoreAttachments()) {
    if (!Choose(wanted)) continue;
    chosen_.push_back(wanted.program);
    facts_.attached.set(wanted.boundary);
  }
  if (!facts_.attached[MRS_BPF_ROOT] || !facts_.attached[MRS_BPF_DEREG]) {
    return Error{ErrorKind::kPrerequisite, 0,
                 "the kernel's types have no ib_uverbs_reg_mr: is ib_uverbs loaded (\"modprobe "
                 "ib_uverbs\"), and does the kernel have types of modules "
                 "(CONFIG_DEBUG_INFO_BTF_MODULES)?"};
  }
  for (const Attachment& wanted : kCostAttachments) {
    if (Choose(wanted)) cost_chosen_.push_back(wanted.program);
  }
  if (options_.follow_processes) {
    for (const char* name : {"forked", "executed", "exited"}) {
      bpf_program__set_autoload(bpf_object__find_program_by_name(object_.get(), name), true);
      chosen_.emplace_back(name);
    }
  }

  const Bytes wanted = options_.buffer_per_cpu
                           ? Bytes{options_.buffer_per_cpu->value * std::max(cpus(), 1U)}
                           : kBufferTotal;
  buffer_total_ = {std::bit_ceil(std::max<std::uint64_t>(wanted.value, 64 * kKiB.value))};
  bpf_map* events = bpf_object__find_map_by_name(object_.get(), "events");
  bpf_map__set_max_entries(events, static_cast<__u32>(buffer_total_.value));
  LibbpfMessages::Forget();
  if (const int error = bpf_object__load(object_.get()); error != 0) {
    const std::string& said = LibbpfMessages::First();
    return Error{ErrorKind::kPrerequisite, -error,
                 fmt::format("the kernel refuses mrscope's BPF programs: {}",
                             said.empty() ? ErrnoText(-error) : said)};
  }
  return {};
}

Result<void> BpfCapture::Attach(const std::vector<std::string>& programs) {
  for (const std::string& name : programs) {
    bpf_link* link =
        bpf_program__attach(bpf_object__find_program_by_name(object_.get(), name.c_str()));
    if (link == nullptr) {
      const int error = errno;
      return Error{
          ErrorKind::kPrerequisite, error,
          fmt::format("the BPF program \"{}\" cannot be attached: {}{}", name, ErrnoText(error),
                      error == EBUSY ? "; a direct trampoline of somebody else is there" : "")};
    }
    links_.emplace_back(link);
  }
  return {};
}

mrs_bpf_shared BpfCapture::ReadShared() const {
  const int map = bpf_object__find_map_fd_by_name(object_.get(), ".data.shared");
  const __u32 key = 0;
  mrs_bpf_shared shared{};
  bpf_map_lookup_elem(map, &key, &shared);
  return shared;
}

// The kernel's own functions for trying programs out are called as a
// registration's are, and do nothing: what passes between them is our cost. An
// error where programs are attached, but not run.
Result<void> BpfCapture::MeasureCost() {
  if (cost_chosen_.size() != kCostAttachments.size()) return {};
  if (auto attached = Attach(cost_chosen_); !attached) return attached;
  const int first = bpf_program__fd(
      bpf_object__find_program_by_name(object_.get(), cost_chosen_.front().c_str()));
  std::optional<BpfCost> cost;
  for (int run = 0; run < kCostRuns; ++run) {
    bpf_test_run_opts test{};
    test.sz = sizeof(test);
    if (bpf_prog_test_run_opts(first, &test) != 0) break;
    const mrs_bpf_shared seen = ReadShared();
    if (seen.tgid == 0) {
      return Error{ErrorKind::kPrerequisite, 0,
                   "BPF programs are attached, but do not run: echo 1 > "
                   "/proc/sys/kernel/ftrace_enabled"};
    }
    own_pid_ = seen.tgid;
    const BpfCost one{Nanoseconds(seen.begin_ns), Nanoseconds(seen.entry_ns),
                      Nanoseconds(seen.record_ns)};
    if (!cost) cost = one;
    cost = {std::min(cost->begin, one.begin), std::min(cost->entry, one.entry),
            std::min(cost->record, one.record)};
  }
  facts_.cost = cost;
  links_.clear();
  return {};
}

Result<void> BpfCapture::Open() {
  if (geteuid() != 0) {
    return Error{ErrorKind::kPrerequisite, EPERM,
                 "no permission to load BPF programs: run as root"};
  }
  if (!Exists("/sys/kernel/btf/vmlinux")) {
    return Error{ErrorKind::kPrerequisite, ENOENT,
                 "the kernel tells none of its types (/sys/kernel/btf/vmlinux), which BPF programs "
                 "need: it takes CONFIG_DEBUG_INFO_BTF"};
  }
  if (LockdownLevel() == "confidentiality") {
    return Error{ErrorKind::kPrerequisite, EPERM,
                 "lockdown keeps BPF programs from reading the kernel: boot without "
                 "lockdown=confidentiality"};
  }
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return Error{ErrorKind::kFailed, errno, "cannot make a pipe"};
  }
  marker_read_ = UniqueFd(ends[0]);
  marker_write_ = UniqueFd(ends[1]);
  own_pid_ = getpid();

  if (auto loaded = Load(); !loaded) return loaded;
  const int events = bpf_object__find_map_fd_by_name(object_.get(), "events");
  ring_.reset(ring_buffer__new(
      events,
      [](void* self, void* data, std::size_t) {
        static_cast<BpfCapture*>(self)->OnEvent(*static_cast<const mrs_bpf_event*>(data));
        return 0;
      },
      this, nullptr));
  if (!ring_) {
    return Error{ErrorKind::kFailed, errno, "cannot read the ring buffer of the BPF programs"};
  }
  if (auto measured = MeasureCost(); !measured) return measured;
  if (auto attached = Attach(chosen_); !attached) return attached;
  if (options_.reader_thread) thread_ = std::thread([this] { Run(); });
  return {};
}

void BpfCapture::OnEvent(const mrs_bpf_event& event) {
  CaptureEvent out;
  out.timestamp_ns = event.time_ns;
  switch (event.kind) {
    case MRS_BPF_OPERATION: {
      if (event.operation.op == MRS_BPF_OP_COST) return;
      KernelRecord record = RecordOf(event.operation, facts_);
      record.seq = ++seq_;
      const auto device = devices_.find(event.operation.device);
      if (device != devices_.end()) device->second.copy(record.device.data(), record.device.size());
      out.what = record;
      break;
    }
    case MRS_BPF_DEVICE_NAME:
      devices_[static_cast<std::uint32_t>(event.pid)] = event.text;
      return;
    case MRS_BPF_FORK:
      if (event.parent == own_pid_) own_children_.insert(event.pid);
      out.what = ForkEvent{event.parent, event.pid};
      break;
    case MRS_BPF_EXEC: {
      // A child has written its mark before it became the program.
      std::array<char, 256> text{};
      if (own_children_.erase(event.pid) != 0) {
        const ssize_t got = read(marker_read_.get(), text.data(), text.size());
        if (got > 0) {
          sink_({event.time_ns,
                 MarkerEvent{event.pid, std::string(text.data(), static_cast<std::size_t>(got))}});
        }
      }
      out.what = ExecEvent{event.pid, event.text};
      break;
    }
    case MRS_BPF_EXIT:
      out.what = ExitEvent{event.pid};
      break;
    default:
      return;
  }
  sink_(out);
}

void BpfCapture::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    ring_buffer__consume(ring_.get());
    wake_.wait_for(lock, kPollInterval, [this] { return stopping_; });
  }
}

void BpfCapture::Drain() {
  const std::lock_guard lock(mutex_);
  if (!stopped_) ring_buffer__consume(ring_.get());
}

Result<void> BpfCapture::Mark(const std::string& text) {
  const std::lock_guard lock(mutex_);
  sink_({static_cast<std::uint64_t>(MonotonicNow().count()), MarkerEvent{own_pid_, text}});
  return {};
}

// What the programs say, and operations that they were not called for: a program
// does not run twice at once on a CPU.
std::uint64_t BpfCapture::Lost() const {
  std::uint64_t lost = ReadShared().lost;
  for (const char* name : {"reg_call", "rereg_call", "method_call", "dmabuf_call", "dereg_call"}) {
    if (std::find(chosen_.begin(), chosen_.end(), name) == chosen_.end()) continue;
    bpf_prog_info info{};
    __u32 size = sizeof(info);
    const int program = bpf_program__fd(bpf_object__find_program_by_name(object_.get(), name));
    if (bpf_obj_get_info_by_fd(program, &info, &size) == 0) lost += info.recursion_misses;
  }
  return lost;
}

CaptureLoss BpfCapture::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  if (stopped_) return loss_;
  stopped_ = true;
  // The outer boundaries first.
  while (!links_.empty()) links_.pop_back();
  if (ring_) {
    ring_buffer__consume(ring_.get());
    loss_.buffer = Lost();
  }
  ring_.reset();
  object_.reset();
  return loss_;
}

}  // namespace

Result<std::unique_ptr<Capture>> StartBpfCapture(const CaptureOptions& options,
                                                 Capture::Sink sink) {
  auto capture = std::make_unique<BpfCapture>(options, std::move(sink));
  if (auto opened = capture->Open(); !opened) return opened.error();
  return std::unique_ptr<Capture>(std::move(capture));
}

}  // namespace mrscope
