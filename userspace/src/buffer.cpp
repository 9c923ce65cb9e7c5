// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/buffer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <limits>
#include <utility>
#include <vector>

#include "mrscope/file.h"

#ifndef MAP_HUGE_2MB
#define MAP_HUGE_2MB (21 << 26)
#endif

namespace mrscope {
namespace {

constexpr Bytes kHuge = {2 * kMiB.value};

std::size_t PageSize() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

Error MapError(Bytes size, int error) {
  return {
      ErrorKind::kFailed, error,
      fmt::format("cannot map {}: {}; choose a smaller size", FormatBytes(size), ErrnoText(error))};
}

// Anonymous memory aligned to `alignment` with a guard on both sides. The
// guards keep the kernel from merging it with a neighbour, so that it has an
// entry of its own in smaps.
Result<BufferRange> MapAligned(Bytes size, Bytes alignment) {
  const std::size_t page = PageSize();
  const std::size_t used = RoundUp(size, alignment).value;
  const std::size_t length = used + alignment.value + 2 * page;
  void* base = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return MapError(size, errno);
  Mapping mapping(base, length);

  const auto first = reinterpret_cast<std::uintptr_t>(base) + page;
  const std::uintptr_t aligned = RoundUp(Bytes{first}, alignment).value;
  std::byte* start = mapping.base() + (aligned - reinterpret_cast<std::uintptr_t>(base));
  if (mprotect(start, used, PROT_READ | PROT_WRITE) != 0) return MapError(size, errno);
  return BufferRange{std::move(mapping), {start, size.value}};
}

Result<BufferRange> MapAnon(Bytes size) {
  auto range = MapAligned(size, Bytes{PageSize()});
  if (!range) return range;
  // A kernel without THP does not know the advice, and does not need it.
  madvise(range->bytes.data(), RoundUp(size, Bytes{PageSize()}).value, MADV_NOHUGEPAGE);
  return range;
}

Result<BufferRange> MapThp(Bytes size) {
  auto range = MapAligned(size, kHuge);
  if (!range) return range;
  if (madvise(range->bytes.data(), RoundUp(size, kHuge).value, MADV_HUGEPAGE) != 0) {
    return Error{ErrorKind::kPrerequisite, errno,
                 "this kernel has no transparent huge pages: use --buffer anon or huge2m"};
  }
  const auto mode = ReadLine("/sys/kernel/mm/transparent_hugepage/enabled");
  if (mode && ChosenWord(*mode) == "never") {
    return Error{ErrorKind::kPrerequisite, 0,
                 "transparent huge pages are off: echo madvise > "
                 "/sys/kernel/mm/transparent_hugepage/enabled"};
  }
  return range;
}

Error NoHugePages(Bytes size) {
  const std::string pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
  const auto free = ReadLine(pool + "free_hugepages");
  const std::uint64_t pages = RoundUp(size, kHuge).value / kHuge.value;
  if (!free) {
    return {ErrorKind::kPrerequisite, 0,
            "this kernel has no pool of 2 MiB huge pages: use --buffer anon or thp"};
  }
  return {ErrorKind::kPrerequisite, ENOMEM,
          fmt::format("{} of huge2m needs {} of 2 MiB and {} are free: echo N > "
                      "{}nr_hugepages, with N at least {}",
                      FormatBytes(size), FormatCount(pages, "huge page"), *free, pool, pages)};
}

Result<BufferRange> MapHuge2m(Bytes size) {
  const std::size_t length = RoundUp(size, kHuge).value;
  void* base = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_HUGE_2MB, -1, 0);
  if (base == MAP_FAILED) {
    // ENOMEM: the pool is too small; ENOENT, EINVAL: there is no such pool.
    return NoHugePages(size);
  }
  Mapping mapping(base, length);
  std::byte* start = mapping.base();
  return BufferRange{std::move(mapping), {start, size.value}};
}

constexpr std::array<BufferKind, 3> kKinds = {{
    {"anon", "anonymous memory in base pages (MADV_NOHUGEPAGE)", {4096}, MapAnon},
    {"thp", "anonymous memory in transparent huge pages (MADV_HUGEPAGE)", kHuge, MapThp},
    {"huge2m", "hugetlb pages of 2 MiB (MAP_HUGETLB), from the reserved pool", kHuge, MapHuge2m},
}};

// A range that nothing else will take: a low hint keeps it out of the way of
// the mappings made later, which are laid from the top down.
Result<std::span<std::byte>> UnmappedRange(Bytes size) {
  constexpr std::uintptr_t kHint = std::uintptr_t{1} << 38;
  void* hint = reinterpret_cast<void*>(kHint);  // NOLINT(performance-no-int-to-ptr)
  void* base =
      mmap(hint, size.value, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return MapError(size, errno);
  munmap(base, size.value);
  return std::span<std::byte>(static_cast<std::byte*>(base), size.value);
}

void Touch(std::span<std::byte> bytes) {
  const std::size_t page = PageSize();
  for (std::size_t offset = 0; offset < bytes.size(); offset += page) {
    *const_cast<volatile std::byte*>(&bytes[offset]) = std::byte{1};
  }
}

// A value like "123 kB" behind `key` in the lines of one smaps entry.
Bytes SmapsValue(std::string_view entry, std::string_view key) {
  for (const std::string_view line : Split(entry, '\n')) {
    if (!line.starts_with(key) || line.substr(key.size(), 1) != ":") continue;
    std::string_view value = Trim(line.substr(key.size() + 1));
    if (value.ends_with(" kB")) value.remove_suffix(3);
    return {ParseNumber(value).value_or(0) * kKiB.value};
  }
  return {};
}

// The head line of an entry: "start-end perms …". Keys start with a capital.
std::optional<std::pair<std::uintptr_t, std::uintptr_t>> EntryRange(std::string_view line) {
  std::uintptr_t first = 0;
  std::uintptr_t last = 0;
  const auto* const end = line.data() + line.size();
  const auto [dash, status] = std::from_chars(line.data(), end, first, 16);
  if (status != std::errc() || dash == end || *dash != '-') return std::nullopt;
  const auto [rest, status2] = std::from_chars(dash + 1, end, last, 16);
  if (status2 != std::errc() || rest == end || *rest != ' ') return std::nullopt;
  return std::pair(first, last);
}

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), length_(other.length_) {}

Mapping::~Mapping() {
  if (base_ != nullptr) munmap(base_, length_);
}

std::span<const BufferKind> BufferKinds() { return kKinds; }

Result<const BufferKind*> FindBufferKind(std::string_view name) {
  std::vector<std::string_view> names;
  for (const BufferKind& kind : kKinds) {
    if (kind.name == name) return &kind;
    names.push_back(kind.name);
  }
  return Error{
      ErrorKind::kUsage, 0,
      fmt::format("unknown buffer kind \"{}\": use one of {}", name, fmt::join(names, ", "))};
}

Buffer::Buffer(std::optional<Mapping> mapping, std::span<std::byte> bytes)
    : mapping_(std::move(mapping)), bytes_(bytes) {}

Result<Buffer> Buffer::Create(const BufferKind& kind, const BufferOptions& options) {
  if (options.unmapped) {
    const auto hole = UnmappedRange(options.size);
    if (!hole) return hole.error();
    return Buffer(std::nullopt, *hole);
  }
  auto range = kind.map(options.size);
  if (!range) return range.error();
  if (options.touched) Touch(range->bytes);
  if (options.read_only) {
    const Bytes whole = RoundUp(options.size, kind.page_size);
    if (mprotect(range->bytes.data(), whole.value, PROT_READ) != 0) {
      return MapError(options.size, errno);
    }
  }
  return Buffer(std::move(range->mapping), range->bytes);
}

std::optional<Backing> Buffer::ReadBacking() const {
  if (!mapping_) return std::nullopt;
  const auto smaps = ReadFile("/proc/self/smaps");
  if (!smaps) return std::nullopt;
  return BackingFromSmaps(*smaps, reinterpret_cast<std::uintptr_t>(bytes_.data()));
}

std::optional<Backing> BackingFromSmaps(std::string_view smaps, std::uintptr_t addr) {
  std::size_t begin = std::string_view::npos;
  std::size_t position = 0;
  while (position < smaps.size()) {
    const std::size_t line_end = std::min(smaps.find('\n', position), smaps.size());
    if (const auto range = EntryRange(smaps.substr(position, line_end - position))) {
      if (begin != std::string_view::npos) break;
      if (range->first <= addr && addr < range->second) begin = line_end + 1;
    }
    position = line_end + 1;
  }
  if (begin == std::string_view::npos || begin > smaps.size()) return std::nullopt;
  const std::string_view entry = smaps.substr(begin, std::min(position, smaps.size()) - begin);
  const Bytes hugetlb = SmapsValue(entry, "Private_Hugetlb") + SmapsValue(entry, "Shared_Hugetlb");
  return Backing{.page_size = SmapsValue(entry, "KernelPageSize"),
                 .resident = SmapsValue(entry, "Rss") + hugetlb,
                 .thp = SmapsValue(entry, "AnonHugePages")};
}

Result<void> CheckMemory(const BufferKind& kind, Bytes size) {
  const auto meminfo = ReadFile("/proc/meminfo");
  if (!meminfo) return {};
  // Huge pages are set aside: whether there are enough, their mmap tells.
  const Bytes limit = SmapsValue(*meminfo, kind.name == "huge2m" ? "MemTotal" : "MemAvailable");
  if (limit.value == 0 || size <= limit) return {};
  return Error{ErrorKind::kUsage, ENOMEM,
               fmt::format("{} is beyond this host's memory, and a registration pins all of it: "
                           "choose --size below {} (of {} in all)",
                           FormatBytes(size), FormatBytes(limit),
                           FormatBytes(SmapsValue(*meminfo, "MemTotal")))};
}

}  // namespace mrscope
