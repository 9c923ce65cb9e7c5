// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/buffer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace mrscope {
namespace {

constexpr Bytes kSize{64 * kKiB.value};

Result<Buffer> Create(std::string_view kind, const BufferOptions& options) {
  return Buffer::Create(**FindBufferKind(kind), options);
}

TEST(BufferKindTest, KnowsTheThree) {
  EXPECT_EQ(BufferKinds().size(), 3U);
  for (const char* name : {"anon", "thp", "huge2m"}) EXPECT_TRUE(FindBufferKind(name)) << name;
  const auto unknown = FindBufferKind("huge1g");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::kUsage);
  EXPECT_NE(unknown.error().message.find("anon, thp, huge2m"), std::string::npos);
}

TEST(BufferTest, UntouchedHasNothingBehindIt) {
  const auto buffer = Create("anon", {.size = kSize});
  ASSERT_TRUE(buffer);
  EXPECT_EQ(buffer->size(), kSize);
  const auto backing = buffer->ReadBacking();
  ASSERT_TRUE(backing);
  EXPECT_EQ(backing->resident.value, 0U);
  EXPECT_EQ(backing->page_size.value, static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
}

TEST(BufferTest, TouchedIsResidentInBasePages) {
  const auto buffer = Create("anon", {.size = kSize, .touched = true});
  ASSERT_TRUE(buffer);
  const auto backing = buffer->ReadBacking();
  ASSERT_TRUE(backing);
  EXPECT_EQ(backing->resident, kSize);
  EXPECT_EQ(backing->thp.value, 0U);
}

TEST(BufferTest, OddSizesAreKept) {
  const auto buffer = Create("anon", {.size = Bytes{4097}, .touched = true});
  ASSERT_TRUE(buffer);
  EXPECT_EQ(buffer->size().value, 4097U);
  EXPECT_EQ(buffer->ReadBacking()->resident.value, 8192U);
}

TEST(BufferTest, ThpIsAligned) {
  const auto buffer = Create("thp", {.size = Bytes{3 * kMiB.value}, .touched = true});
  if (!buffer) GTEST_SKIP() << buffer.error().message;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % (2 * kMiB.value), 0U);
  EXPECT_GE(buffer->ReadBacking()->resident.value, 3 * kMiB.value);
}

TEST(BufferTest, HugetlbWithoutAPoolNamesTheRemedy) {
  const auto buffer = Create("huge2m", {.size = Bytes{1ULL << 40}});
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().kind, ErrorKind::kPrerequisite);
  EXPECT_NE(buffer.error().message.find("huge"), std::string::npos);
}

TEST(BufferTest, ReadOnlyKeepsItsContent) {
  const auto buffer = Create("anon", {.size = kSize, .touched = true, .read_only = true});
  ASSERT_TRUE(buffer);
  EXPECT_EQ(*static_cast<const std::byte*>(buffer->data()), std::byte{1});
  // A write through the kernel fails where one of ours would fault.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_EQ(read(ends[0], buffer->data(), 1), -1);
  EXPECT_EQ(errno, EFAULT);
  close(ends[0]);
  close(ends[1]);
}

TEST(BufferTest, UnmappedIsNotMapped) {
  const auto buffer = Create("anon", {.size = kSize, .unmapped = true});
  ASSERT_TRUE(buffer);
  EXPECT_FALSE(buffer->ReadBacking());
  std::vector<unsigned char> resident(kSize.value / 4096);
  EXPECT_EQ(mincore(buffer->data(), kSize.value, resident.data()), -1);
  EXPECT_EQ(errno, ENOMEM);
}

TEST(BufferTest, ANewOneIsFresh) {
  for (int i = 0; i < 3; ++i) {
    const auto buffer = Create("anon", {.size = kSize});
    ASSERT_TRUE(buffer);
    EXPECT_EQ(buffer->ReadBacking()->resident.value, 0U);
    *static_cast<volatile char*>(buffer->data()) = 1;
  }
}

constexpr std::string_view kSmaps =
    "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
    "Size:                  4 kB\n"
    "KernelPageSize:        4 kB\n"
    "Rss:                   4 kB\n"
    "AnonHugePages:         0 kB\n"
    "VmFlags: rd wr\n"
    "7f0000200000-7f0000600000 rw-p 00000000 00:00 0  [anon: name]\n"
    "Size:               4096 kB\n"
    "KernelPageSize:        4 kB\n"
    "Rss:                4096 kB\n"
    "AnonHugePages:      2048 kB\n"
    "Private_Hugetlb:       0 kB\n"
    "7f0000600000-7f0000a00000 rw-p 00000000 00:0f 12 /anon_hugepage (deleted)\n"
    "Size:               4096 kB\n"
    "KernelPageSize:     2048 kB\n"
    "Rss:                   0 kB\n"
    "Private_Hugetlb:    4096 kB\n";

TEST(BackingFromSmapsTest, FindsTheEntryOfAnAddress) {
  EXPECT_EQ(BackingFromSmaps(kSmaps, 0x7f0000000fff)->resident.value, 4096U);
  const auto thp = BackingFromSmaps(kSmaps, 0x7f0000200000);
  EXPECT_EQ(thp->resident.value, 4096U * 1024);
  EXPECT_EQ(thp->thp.value, 2048U * 1024);
  const auto hugetlb = BackingFromSmaps(kSmaps, 0x7f00009fffff);
  EXPECT_EQ(hugetlb->page_size.value, 2048U * 1024);
  EXPECT_EQ(hugetlb->resident.value, 4096U * 1024);
  EXPECT_FALSE(BackingFromSmaps(kSmaps, 0x7f0000001000));
  EXPECT_FALSE(BackingFromSmaps("", 0x1000));
}

TEST(CheckMemoryTest, RefusesWhatIsBeyondTheHost) {
  EXPECT_TRUE(CheckMemory(**FindBufferKind("anon"), kSize));
  for (const char* kind : {"anon", "huge2m"}) {
    const auto checked = CheckMemory(**FindBufferKind(kind), Bytes{1ULL << 60});
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().kind, ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace mrscope
