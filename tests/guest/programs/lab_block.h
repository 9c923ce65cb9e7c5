// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Memory, and what must be in it, byte for byte: what is around a target is its
// guard zone.

#ifndef TESTS_GUEST_LAB_BLOCK_H_
#define TESTS_GUEST_LAB_BLOCK_H_

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device.h"
#include "random.h"

inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

class Block {
 public:
  enum class Kind {
    kTouched,
    kUntouched,
    kHugePages,  // transparent
    kHugetlb,
    kShared,
    kOnDemand,  // its regions are, so that its pages may go
  };

  // Of another kind where the system has no free huge page.
  static std::shared_ptr<Block> Create(Kind kind, Random& random, bool large = false) {
    std::shared_ptr<Block> block(new Block(kind));
    if (!block->Map(SomeSize(kind, random, large))) {
      block->kind_ = Kind::kTouched;
      if (!block->Map(kHugePage)) Die("cannot map memory");
    }
    if (block->kind_ != Kind::kUntouched) block->Scribble(0, block->size(), random);
    return block;
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    if (mapping_ != nullptr) munmap(mapping_, mapped_);
  }

  Kind kind() const { return kind_; }
  std::size_t size() const { return expected_.size(); }
  std::uint8_t* data() const { return data_; }
  std::span<std::uint8_t> expected() { return expected_; }

  // New bytes, by the CPU: a part of what chance has made once, as making it takes
  // long where the machine is emulated.
  void Scribble(std::size_t offset, std::size_t length, Random& random) {
    const std::vector<std::uint8_t>& noise = Noise();
    for (const std::size_t end = offset + length; offset < end;) {
      const std::size_t from = random.Below(noise.size());
      const std::size_t some = std::min(noise.size() - from, end - offset);
      std::memcpy(&expected_[offset], &noise[from], some);
      std::memcpy(data_ + offset, &noise[from], some);
      offset += some;
    }
  }

  // Whole pages become zeros.
  void Discard(std::size_t offset, std::size_t length) {
    madvise(data_ + offset, length, MADV_DONTNEED);
    std::fill_n(expected_.begin() + static_cast<std::ptrdiff_t>(offset), length, 0);
  }

  void Unmap() {
    munmap(mapping_, mapped_);
    mapping_ = nullptr;
  }

  // Where it is not what it must be.
  std::optional<std::size_t> Wrong() const {
    if (std::memcmp(data_, expected_.data(), size()) == 0) return std::nullopt;
    return std::mismatch(expected_.begin(), expected_.end(), data_).first - expected_.begin();
  }

 private:
  explicit Block(Kind kind) : kind_(kind) {}

  static const std::vector<std::uint8_t>& Noise() {
    static const std::vector<std::uint8_t> noise = [] {
      Random random(0);
      std::vector<std::uint8_t> bytes(std::size_t{1} << 18);
      std::generate(bytes.begin(), bytes.end(),
                    [&] { return static_cast<std::uint8_t>(random.Next()); });
      return bytes;
    }();
    return noise;
  }

  // Mostly pages, now and then megabytes.
  static std::size_t SomeSize(Kind kind, Random& random, bool large) {
    const std::uint64_t pages =
        large ? 260 + random.Below(260) : 3 + random.Below(random.Percent(15) ? 1000 : 14);
    if (kind == Kind::kHugetlb) return kHugePage;
    return kind == Kind::kHugePages ? kHugePage : pages * kPage;
  }

  bool Map(std::size_t size) {
    const int flags = (kind_ == Kind::kShared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS |
                      (kind_ == Kind::kHugetlb ? MAP_HUGETLB : 0);
    // What is to have huge pages must be aligned to them.
    const std::size_t spare = kind_ == Kind::kHugePages ? kHugePage : 0;
    void* mapping = mmap(nullptr, size + spare, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (mapping == MAP_FAILED) return false;
    mapping_ = static_cast<std::uint8_t*>(mapping);
    mapped_ = size + spare;
    data_ = mapping_;
    if (kind_ == Kind::kHugePages) {
      data_ += -reinterpret_cast<std::uintptr_t>(data_) % kHugePage;
      madvise(data_, size, MADV_HUGEPAGE);
    }
    expected_.assign(size, 0);
    return true;
  }

  Kind kind_;
  std::uint8_t* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::uint8_t* data_ = nullptr;
  std::vector<std::uint8_t> expected_;
};

#endif  // TESTS_GUEST_LAB_BLOCK_H_
