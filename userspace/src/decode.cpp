// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/decode.h"

#include <event-parse.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <variant>
#include <vector>

#include "mrscope.h"

namespace mrscope {

std::string_view OpName(Op op) {
  static constexpr std::array<std::string_view, MRSCOPE_OPS> kNames = {MRSCOPE_OP_NAMES};
  const auto index = static_cast<std::size_t>(op);
  return index < kNames.size() ? kNames.at(index) : "unknown";
}

std::string_view EntryName(std::uint32_t entry) {
  static constexpr std::array<std::string_view, MRSCOPE_ENTRIES> kNames = {MRSCOPE_ENTRY_NAMES};
  return entry < kNames.size() ? kNames.at(entry) : "unknown";
}

std::string_view PurposeName(std::uint32_t purpose) {
  static constexpr std::array<std::string_view, MRSCOPE_PURPOSES> kNames = {MRSCOPE_PURPOSE_NAMES};
  return purpose < kNames.size() ? kNames.at(purpose) : "unknown";
}

namespace {

static_assert(std::tuple_size_v<decltype(KernelRecord::stage_ns)> >= MRSCOPE_REG_STAGES);

constexpr std::array<std::string_view, MRSCOPE_REG_STAGES> kRegStage = {MRSCOPE_REG_STAGE_NAMES};
constexpr std::array<std::string_view, MRSCOPE_DEREG_STAGES> kDeregStage = {
    MRSCOPE_DEREG_STAGE_NAMES};

// Where a field lies in the raw data.
struct Field {
  std::size_t offset = 0;
  std::size_t size = 0;
  bool is_signed = false;
  bool is_location = false;  // __data_loc: offset and length of the text
  bool is_relative = false;  // __rel_loc: the offset counts from the field's end
};

using Data = std::span<const std::byte>;

template <typename T>
T Load(Data data, std::size_t offset) {
  T value{};
  std::memcpy(&value, data.data() + offset, sizeof(value));
  return value;
}

std::uint64_t ReadNumber(const Field& field, Data data) {
  if (field.offset + field.size > data.size()) return 0;
  switch (field.size) {
    case 1:
      return field.is_signed ? static_cast<std::uint64_t>(Load<std::int8_t>(data, field.offset))
                             : Load<std::uint8_t>(data, field.offset);
    case 2:
      return field.is_signed ? static_cast<std::uint64_t>(Load<std::int16_t>(data, field.offset))
                             : Load<std::uint16_t>(data, field.offset);
    case 4:
      return field.is_signed ? static_cast<std::uint64_t>(Load<std::int32_t>(data, field.offset))
                             : Load<std::uint32_t>(data, field.offset);
    case 8:
      return Load<std::uint64_t>(data, field.offset);
    default:
      return 0;
  }
}

std::string_view ReadText(const Field& field, Data data) {
  std::size_t offset = field.offset;
  std::size_t size = field.size;
  if (field.is_location) {
    if (offset + 4 > data.size()) return {};
    const auto location = Load<std::uint32_t>(data, offset);
    offset = (location & 0xffff) + (field.is_relative ? field.offset + field.size : 0);
    size = location >> 16;
  }
  if (offset > data.size()) return {};
  // The text of a marker has no length of its own: it ends with the event.
  size = size == 0 ? data.size() - offset : std::min(size, data.size() - offset);
  const std::string_view text(reinterpret_cast<const char*>(data.data()) + offset, size);
  return text.substr(0, text.find('\0'));
}

template <std::size_t N>
void CopyText(std::string_view text, std::array<char, N>& to) {
  const std::size_t length = std::min(text.size(), N - 1);
  std::copy_n(text.data(), length, to.data());
}

// Collects fields by name and remembers the first that is missing.
class Layout {
 public:
  explicit Layout(tep_event* event) : event_(event) {}

  Field Find(const std::string& name) {
    const tep_format_field* found = tep_find_any_field(event_, name.c_str());
    if (found == nullptr) {
      if (missing_.empty()) missing_ = name;
      return {};
    }
    return {.offset = static_cast<std::size_t>(found->offset),
            .size = static_cast<std::size_t>(found->size),
            .is_signed = (found->flags & TEP_FIELD_IS_SIGNED) != 0,
            .is_location = (found->flags & TEP_FIELD_IS_DYNAMIC) != 0,
            .is_relative = (found->flags & TEP_FIELD_IS_RELATIVE) != 0};
  }
  const std::string& missing() const { return missing_; }

 private:
  tep_event* event_;
  std::string missing_;
};

// A number of the record and the field it comes from.
struct Slot {
  Field field;
  void (*store)(KernelRecord&, std::uint64_t);
};

template <auto Member>
void Store(KernelRecord& record, std::uint64_t value) {
  using T = std::remove_reference_t<decltype(record.*Member)>;
  record.*Member = static_cast<T>(value);
}

struct NamedSlot {
  const char* name;
  void (*store)(KernelRecord&, std::uint64_t);
};

constexpr NamedSlot kCommonSlots[] = {
    {"seq", Store<&KernelRecord::seq>},
    {"start_ns", Store<&KernelRecord::start_ns>},
    {"total_ns", Store<&KernelRecord::total_ns>},
    {"addr", Store<&KernelRecord::addr>},
    {"length", Store<&KernelRecord::length>},
    {"iova", Store<&KernelRecord::iova>},
    {"op",
     [](KernelRecord& record, std::uint64_t value) {
       record.op = value < MRSCOPE_OPS ? static_cast<Op>(value) : Op::kUnknown;
     }},
    {"entry", Store<&KernelRecord::entry>},
    {"flags", Store<&KernelRecord::flags>},
    {"ret", Store<&KernelRecord::ret>},
    {"observed", Store<&KernelRecord::observed>},
    {"merged", Store<&KernelRecord::merged>},
    {"pages", Store<&KernelRecord::pages>},
    {"sg_entries", Store<&KernelRecord::sg_entries>},
    {"nvcsw", Store<&KernelRecord::nvcsw>},
    {"nivcsw", Store<&KernelRecord::nivcsw>},
    {"probe_cost_ns", Store<&KernelRecord::probe_cost_ns>},
    {"lkey", Store<&KernelRecord::lkey>},
    {"rkey", Store<&KernelRecord::rkey>},
    {"tid", Store<&KernelRecord::tid>},
    {"tgid", Store<&KernelRecord::tgid>},
    {"vtid", Store<&KernelRecord::vtid>},
    {"vtgid", Store<&KernelRecord::vtgid>},
};

constexpr NamedSlot kRegSlots[] = {
    {"purpose", Store<&KernelRecord::purpose>},
    {"access", Store<&KernelRecord::access>},
    {"failed_stage", Store<&KernelRecord::failed_stage>},
    {"page_size", Store<&KernelRecord::page_size>},
    {"pin_batches", Store<&KernelRecord::pin_batches>},
    {"dma_entries", Store<&KernelRecord::dma_entries>},
    {"faults_minor", Store<&KernelRecord::faults_minor>},
    {"faults_major", Store<&KernelRecord::faults_major>},
    {"slow_ns", Store<&KernelRecord::slow_ns>},
    {"slow_calls", Store<&KernelRecord::slow_calls>},
    {"migrations", Store<&KernelRecord::migrations>},
};

constexpr NamedSlot kDeregSlots[] = {
    {"owner_tgid", Store<&KernelRecord::owner_tgid>},
};

struct RecordLayout {
  std::vector<Slot> slots;
  std::vector<Field> stages;
  Field comm;
  Field device;
  std::optional<Field> owner_comm;

  KernelRecord Read(Data data) const {
    KernelRecord record;
    for (const Slot& slot : slots) slot.store(record, ReadNumber(slot.field, data));
    for (std::size_t i = 0; i < stages.size(); ++i) {
      record.stage_ns.at(i) = ReadNumber(stages[i], data);
    }
    CopyText(ReadText(comm, data), record.comm);
    CopyText(ReadText(device, data), record.device);
    if (owner_comm) CopyText(ReadText(*owner_comm, data), record.owner_comm);
    return record;
  }
};

struct ForkLayout {
  Field parent, child;
};
struct ExecLayout {
  Field pid, filename;
};
struct ExitLayout {
  Field pid;
};
struct MarkerLayout {
  Field pid, text;
};

using AnyLayout =
    std::variant<std::monostate, RecordLayout, ForkLayout, ExecLayout, ExitLayout, MarkerLayout>;

RecordLayout MakeRecordLayout(Layout& layout, bool dereg) {
  RecordLayout record;
  const auto add = [&](std::span<const NamedSlot> slots) {
    for (const NamedSlot& slot : slots) {
      record.slots.push_back({layout.Find(slot.name), slot.store});
    }
  };
  add(kCommonSlots);
  if (dereg) {
    add(kDeregSlots);
    for (const auto name : kDeregStage)
      record.stages.push_back(layout.Find(fmt::format("{}_ns", name)));
    record.owner_comm = layout.Find("owner_comm");
  } else {
    add(kRegSlots);
    for (const auto name : kRegStage)
      record.stages.push_back(layout.Find(fmt::format("{}_ns", name)));
  }
  record.comm = layout.Find("comm");
  record.device = layout.Find("device");
  return record;
}

AnyLayout MakeLayout(std::string_view name, Layout& layout) {
  if (name == "mr_reg") return MakeRecordLayout(layout, false);
  if (name == "mr_dereg") return MakeRecordLayout(layout, true);
  if (name == "sched_process_fork") {
    return ForkLayout{.parent = layout.Find("parent_pid"), .child = layout.Find("child_pid")};
  }
  if (name == "sched_process_exec") {
    return ExecLayout{.pid = layout.Find("pid"), .filename = layout.Find("filename")};
  }
  if (name == "sched_process_exit") return ExitLayout{.pid = layout.Find("pid")};
  if (name == "print") {
    return MarkerLayout{.pid = layout.Find("common_pid"), .text = layout.Find("buf")};
  }
  return std::monostate{};
}

}  // namespace

struct EventDecoder::Impl {
  struct TepFree {
    void operator()(tep_handle* tep) const { tep_free(tep); }
  };
  std::unique_ptr<tep_handle, TepFree> tep{tep_alloc()};
  std::optional<Field> type;
  std::map<int, AnyLayout> layouts;
};

EventDecoder::EventDecoder() : impl_(std::make_unique<Impl>()) {
  if (!impl_->tep) throw std::bad_alloc();
  // The print formats are of no interest here, so neither is a warning about
  // one of them.
  tep_set_loglevel(TEP_LOG_NONE);
}
EventDecoder::~EventDecoder() = default;
EventDecoder::EventDecoder(EventDecoder&&) noexcept = default;
EventDecoder& EventDecoder::operator=(EventDecoder&&) noexcept = default;

Result<void> EventDecoder::AddHeaderPage(std::string_view text) {
  std::string copy(text);
  if (tep_parse_header_page(impl_->tep.get(), copy.data(), copy.size(), sizeof(long)) < 0) {
    return Error{ErrorKind::kFailed, 0, "cannot understand events/header_page of tracefs"};
  }
  return {};
}

Bytes EventDecoder::subbuffer_size() const {
  return {static_cast<std::uint64_t>(tep_get_sub_buffer_size(impl_->tep.get()))};
}

Result<void> EventDecoder::AddFormat(std::string_view system, std::string_view format) {
  const std::string system_name(system);
  // The first line is "name: NAME"; the parser's own return value also counts
  // print formats that it cannot read, which do not matter.
  const auto first_line = format.substr(0, format.find('\n'));
  constexpr std::string_view kNamePrefix = "name: ";
  const std::string name(first_line.starts_with(kNamePrefix) ? first_line.substr(kNamePrefix.size())
                                                             : std::string_view{});
  tep_parse_event(impl_->tep.get(), format.data(), format.size(), system_name.c_str());
  tep_event* event = tep_find_event_by_name(impl_->tep.get(), system_name.c_str(), name.c_str());
  if (event == nullptr) {
    return Error{
        ErrorKind::kFailed, 0,
        fmt::format("cannot understand the format of the trace event {}:{}", system, name)};
  }
  Layout layout(event);
  if (!impl_->type) impl_->type = layout.Find("common_type");
  AnyLayout made = MakeLayout(name, layout);
  if (!layout.missing().empty()) {
    return Error{ErrorKind::kPrerequisite, 0,
                 fmt::format("the trace event {}:{} has no field \"{}\": mrscope.ko and mr_probe "
                             "are of different versions, build and load both from one tree",
                             system, name, layout.missing())};
  }
  impl_->layouts[event->id] = std::move(made);
  return {};
}

std::optional<CaptureEvent> EventDecoder::Decode(std::uint64_t timestamp_ns, Data data) const {
  if (!impl_->type || data.size() < impl_->type->offset + impl_->type->size) return std::nullopt;
  const auto found = impl_->layouts.find(static_cast<int>(ReadNumber(*impl_->type, data)));
  if (found == impl_->layouts.end()) return std::nullopt;

  CaptureEvent event{.timestamp_ns = timestamp_ns, .what = {}};
  const auto pid = [&](const Field& field) { return static_cast<pid_t>(ReadNumber(field, data)); };
  if (const auto* record = std::get_if<RecordLayout>(&found->second)) {
    event.what = record->Read(data);
  } else if (const auto* fork = std::get_if<ForkLayout>(&found->second)) {
    event.what = ForkEvent{.parent = pid(fork->parent), .child = pid(fork->child)};
  } else if (const auto* exec = std::get_if<ExecLayout>(&found->second)) {
    event.what =
        ExecEvent{.pid = pid(exec->pid), .filename = std::string(ReadText(exec->filename, data))};
  } else if (const auto* exit = std::get_if<ExitLayout>(&found->second)) {
    event.what = ExitEvent{.tid = pid(exit->pid)};
  } else if (const auto* marker = std::get_if<MarkerLayout>(&found->second)) {
    event.what =
        MarkerEvent{.tid = pid(marker->pid), .text = std::string(ReadText(marker->text, data))};
  } else {
    return std::nullopt;
  }
  return event;
}

}  // namespace mrscope
