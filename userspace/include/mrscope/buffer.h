// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Memory to register, of several kinds. What the kernel really gave is read
// back, since a wish for huge pages is only a wish.

#ifndef MRSCOPE_BUFFER_H_
#define MRSCOPE_BUFFER_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "mrscope/result.h"
#include "mrscope/units.h"

namespace mrscope {

// Owns an address range.
class Mapping {
 public:
  Mapping(void* base, std::size_t length) : base_(base), length_(length) {}
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&&) = delete;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  std::byte* base() const { return static_cast<std::byte*>(base_); }
  std::size_t length() const { return length_; }

 private:
  void* base_;
  std::size_t length_;
};

// A mapping with the part of it that is the buffer.
struct BufferRange {
  Mapping mapping;
  std::span<std::byte> bytes;
};

// One entry a kind: a new one is one more entry of the table in buffer.cpp.
struct BufferKind {
  std::string_view name;
  std::string_view summary;
  Bytes page_size;  // that the kind hopes for
  // Maps `size` bytes, writable and untouched.
  Result<BufferRange> (*map)(Bytes size);
};

std::span<const BufferKind> BufferKinds();
// kUsage where there is none of that name, naming those there are.
Result<const BufferKind*> FindBufferKind(std::string_view name);

struct BufferOptions {
  Bytes size;
  bool touched = false;    // one byte of each page was written
  bool read_only = false;  // PROT_READ
  bool unmapped = false;   // the range is not mapped any more
};

// What lies behind a buffer at this moment, from /proc/self/smaps.
struct Backing {
  Bytes page_size;  // of the mapping, as the MMU sees it for hugetlb
  Bytes resident;
  Bytes thp;  // part of `resident` that is in transparent huge pages
};

class Buffer {
 public:
  // kPrerequisite where the host lacks what the kind needs.
  static Result<Buffer> Create(const BufferKind& kind, const BufferOptions& options);

  void* data() const { return bytes_.data(); }
  Bytes size() const { return {bytes_.size()}; }
  // nullopt where the range is not mapped or smaps cannot be read.
  std::optional<Backing> ReadBacking() const;

 private:
  Buffer(std::optional<Mapping> mapping, std::span<std::byte> bytes);

  std::optional<Mapping> mapping_;
  std::span<std::byte> bytes_;
};

// The entry of `smaps` (its text) that holds `addr`.
std::optional<Backing> BackingFromSmaps(std::string_view smaps, std::uintptr_t addr);

// kUsage where `size` cannot be had on this host, with what can.
Result<void> CheckMemory(const BufferKind& kind, Bytes size);

}  // namespace mrscope

#endif  // MRSCOPE_BUFFER_H_
