// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Registers memory of another driver, udmabuf, as a dmabuf on mrlab0, and
// reaches it by RDMA. A line for each case: NAME: what came of it. Exit status 77
// where the kernel has no udmabuf.

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>

#include "mrscope/file.h"
#include "pair.h"

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLength = 16 * kPage;
constexpr std::size_t kOffset = 3 * kPage;  // of the region in the dmabuf
constexpr std::size_t kRegion = 8 * kPage;
constexpr int kExitSkip = 77;

// Memory that is both mapped here and a dmabuf.
struct Shared {
  Shared() {
    const int memory = memfd_create("lab", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    if (memory < 0 || ftruncate(memory, kLength) != 0 ||
        fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
      Die("no memfd");
    }
    void* mapped = mmap(nullptr, kLength, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (mapped == MAP_FAILED) Die("cannot map a memfd");
    base = static_cast<char*>(mapped);
    const int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
    if (device < 0) std::exit(kExitSkip);
    udmabuf_create wish{};
    wish.memfd = static_cast<std::uint32_t>(memory);
    wish.flags = UDMABUF_FLAGS_CLOEXEC;
    wish.size = kLength;
    fd = ioctl(device, UDMABUF_CREATE, &wish);
    if (fd < 0) Die("no dmabuf");
  }

  char* base = nullptr;
  int fd = -1;
};

void Refused(const std::string& name, ibv_pd* pd, std::size_t offset, std::size_t length, int fd,
             unsigned access) {
  const ibv_mr* mr = ibv_reg_dmabuf_mr(pd, offset, length, offset, fd, static_cast<int>(access));
  std::cout << name << ": " << (mr == nullptr ? mrscope::ErrnoName(errno) : "registered")
            << std::endl;
}

}  // namespace

int main() {
  const auto context = mrscope::Context::Open("mrlab0");
  if (!context) Die(context.error().message);
  Pair pair(context->get());
  const Shared shared;
  std::memset(shared.base, 0x22, kLength);

  char* here = MapMemory(kRegion);
  std::memset(here, 0x11, kRegion);
  const auto local = Register(pair.requester.pd(), here, kRegion, kAllAccess);
  const std::uint64_t iova = 0x5000'0000;
  const VerbsMr remote(ibv_reg_dmabuf_mr(pair.responder.pd(), kOffset, kRegion, iova, shared.fd,
                                         static_cast<int>(kAllAccess)),
                       ibv_dereg_mr);
  if (!remote) Die(std::string("no dmabuf MR: ") + std::strerror(errno));

  std::array<ibv_sge, 1> sge{Sge(*local, 0, kRegion)};
  auto wr = Request(IBV_WR_RDMA_WRITE, nullptr, remote->rkey);
  wr.wr.rdma.remote_addr = iova;
  std::cout << "write: " << StatusText(pair.requester.Do(wr, sge)) << std::endl;
  const auto written = [&](std::size_t from, std::size_t to) {
    return std::all_of(shared.base + from, shared.base + to, [](char c) { return c == 0x11; });
  };
  const auto old = [&](std::size_t from, std::size_t to) {
    return std::all_of(shared.base + from, shared.base + to, [](char c) { return c == 0x22; });
  };
  std::cout << "all of it, and no more: "
            << (written(kOffset, kOffset + kRegion) && old(0, kOffset) &&
                old(kOffset + kRegion, kLength))
            << std::endl;

  std::memset(shared.base, 0x33, kLength);
  wr.opcode = IBV_WR_RDMA_READ;
  std::cout << "read: " << StatusText(pair.requester.Do(wr, sge)) << std::endl;
  std::cout << "all of it: " << std::all_of(here, here + kRegion, [](char c) { return c == 0x33; })
            << std::endl;

  ibv_pd* pd = pair.responder.pd();
  Refused("no descriptor", pd, 0, kPage, -1, kAllAccess);
  Refused("no dmabuf", pd, 0, kPage, STDERR_FILENO, kAllAccess);
  Refused("beyond its end", pd, kLength - kPage, 2 * kPage, shared.fd, kAllAccess);
  Refused("of no length", pd, 0, 0, shared.fd, kAllAccess);
  Refused("on demand", pd, 0, kPage, shared.fd, kAllAccess | IBV_ACCESS_ON_DEMAND);
  return 0;
}
