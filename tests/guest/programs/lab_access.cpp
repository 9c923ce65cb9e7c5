// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What mrlab0 lets through, and what it refuses: a line for each case,
//   NAME: STATUS, N bytes changed, refused REASON...
// STATUS is the requester's completion; the bytes are those of the memory that
// was not to be reached (or was, where the case is a control); the reasons are
// what the device has counted meanwhile.
//
// Usage: lab_access [dma | taken]
//   dma: the cases of the bus master, which need the edu device and an IOMMU
//   taken: what a large message needs is taken away while the bus master carries
//     it, which would take minutes

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "pair.h"

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint32_t kLength = 64;
constexpr int kPatience = 60'000;  // ms
const std::string kDebugfs = "/sys/kernel/debug/mrlab/mrlab0/";

// Memory of one side, and what it was filled with.
struct Memory {
  explicit Memory(std::uint8_t filling, std::size_t length = 2 * kPage)
      : base(MapMemory(length)), length(length), filling(filling) {
    std::memset(base, filling, length);
  }
  std::size_t Changed() const {
    return static_cast<std::size_t>(std::count_if(
        base, base + length, [this](char c) { return static_cast<std::uint8_t>(c) != filling; }));
  }

  char* base;
  std::size_t length;
  std::uint8_t filling;
};

std::map<std::string, long> Refused() {
  std::map<std::string, long> counts;
  std::ifstream file(kDebugfs + "refused");
  if (!file) Die("no " + kDebugfs + "refused");
  std::string reason;
  long count = 0;
  while (file >> reason >> count) counts[reason] = count;
  return counts;
}

bool ByBusMaster() {
  std::ifstream file("/sys/module/mrlab/parameters/bus_master");
  return file.get() == 'Y';
}

class Case {
 public:
  explicit Case(ibv_context* context, const PairOptions& options = {})
      : pair(context, options), context(context) {}

  // A request of the requester, and what came of it.
  void Show(const std::string& name, const ibv_send_wr& wr, std::vector<ibv_sge> sges,
            const Memory& watched) {
    const auto before = Refused();
    const int status = pair.requester.Do(wr, sges);
    std::cout << name << ": " << StatusText(status) << ", " << watched.Changed()
              << " bytes changed, refused";
    for (const auto& [reason, count] : Refused())
      if (count > before.at(reason)) std::cout << ' ' << reason;
    std::cout << std::endl;
  }

  // The first page of either side's memory.
  VerbsMr Local(unsigned access = 0) {
    return Register(pair.requester.pd(), here.base, kPage, access);
  }
  VerbsMr Remote(unsigned access = kAllAccess) {
    return Register(pair.responder.pd(), there.base, kPage, access);
  }

  Pair pair;
  ibv_context* context;
  Memory here{0x11};
  Memory there{0x22};
};

using Test = std::function<void(ibv_context*)>;

// ---- controls: what is allowed does arrive ----

void Write(ibv_context* context) {
  Case c(context);
  const auto local = c.Local();
  const auto remote = c.Remote();
  c.Show("write", Request(IBV_WR_RDMA_WRITE, c.there.base + kPage - kLength, remote->rkey),
         {Sge(*local, 1, kLength)}, c.there);
}

void Read(ibv_context* context) {
  Case c(context);
  const auto local = c.Local(IBV_ACCESS_LOCAL_WRITE);
  const auto remote = c.Remote(IBV_ACCESS_REMOTE_READ);
  c.Show("read", Request(IBV_WR_RDMA_READ, c.there.base, remote->rkey), {Sge(*local, 3, kLength)},
         c.here);
}

void WriteNothing(ibv_context* context) {
  Case c(context);
  c.Show("write of no bytes, any key", Request(IBV_WR_RDMA_WRITE, c.there.base, 0x12345), {},
         c.there);
}

void ZeroBased(ibv_context* context) {
  Case c(context);
  const auto local = c.Local();
  const auto remote = Register(c.pair.responder.pd(), c.there.base + 100, kPage,
                               kAllAccess | IBV_ACCESS_ZERO_BASED);
  c.Show("zero-based", Request(IBV_WR_RDMA_WRITE, nullptr, remote->rkey), {Sge(*local, 0, kLength)},
         c.there);
  std::cout << "  at its first byte: " << (c.there.base[100] == 0x11) << std::endl;
}

void OwnIova(ibv_context* context) {
  Case c(context);
  const auto local = c.Local();
  const std::uint64_t iova = 0x7000'0000'0000;
  const VerbsMr remote(ibv_reg_mr_iova(c.pair.responder.pd(), c.there.base, kPage, iova,
                                       static_cast<int>(kAllAccess)),
                       ibv_dereg_mr);
  if (!remote) Die("no MR with an IOVA");
  auto wr = Request(IBV_WR_RDMA_WRITE, nullptr, remote->rkey);
  wr.wr.rdma.remote_addr = iova + 8;
  c.Show("another iova", wr, {Sge(*local, 0, kLength)}, c.there);
}

// Of the memory that it was given last, by the addresses of that.
void Reregistered(ibv_context* context) {
  Case c(context);
  const auto local = c.Local();
  const auto remote = c.Remote();
  const char* before = c.there.base;
  const std::uint32_t rkey = remote->rkey;
  char* now = c.there.base + kPage;
  if (ibv_rereg_mr(remote.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, now, kPage, 0) != 0)
    Die("no other translation");
  c.Show("where it was before", Request(IBV_WR_RDMA_WRITE, before, remote->rkey),
         {Sge(*local, 0, kLength)}, c.there);
  c.pair.requester.SetState(IBV_QPS_RESET);
  c.pair.responder.SetState(IBV_QPS_RESET);
  c.pair.requester.Connect(c.pair.responder.qp()->qp_num);
  c.pair.responder.Connect(c.pair.requester.qp()->qp_num);
  c.Show("re-registered elsewhere", Request(IBV_WR_RDMA_WRITE, now, remote->rkey),
         {Sge(*local, 0, kLength)}, c.there);
  std::cout << "  there: " << (now[0] == 0x11) << ", by another key: " << (rkey != remote->rkey)
            << std::endl;
}

void Inline(ibv_context* context) {
  Case c(context);
  const auto remote = c.Remote();
  auto wr = Request(IBV_WR_RDMA_WRITE, c.there.base, remote->rkey);
  wr.send_flags |= IBV_SEND_INLINE;
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(c.here.base), kLength, 0};
  c.Show("inline, without a key", wr, {sge}, c.there);
}

void Invalidate(ibv_context* context) {
  Case c(context);
  const auto local = c.Local();
  const auto landing =
      Register(c.pair.responder.pd(), c.there.base + kPage, kPage, IBV_ACCESS_LOCAL_WRITE);
  const auto remote = c.Remote();
  std::array<ibv_sge, 1> into{Sge(*landing, 0, kLength)};
  c.pair.responder.Receive(into);
  auto send = Request(IBV_WR_SEND_WITH_INV);
  send.invalidate_rkey = remote->rkey;
  c.Show("send with invalidate", send, {Sge(*local, 0, kLength)}, c.there);
  const auto [status, wc] = c.pair.responder.Wait();
  std::cout << "  received: " << StatusText(status) << ", the key is told: "
            << ((wc.wc_flags & IBV_WC_WITH_INV) != 0 && wc.invalidated_rkey == remote->rkey)
            << std::endl;
  c.Show("write by the invalidated key", Request(IBV_WR_RDMA_WRITE, c.there.base, remote->rkey),
         {Sge(*local, 0, kLength)}, c.there);
}

// ---- keys ----

void OtherPd(ibv_context* context) {
  Case c(context);
  const auto pd = AllocatePd(context);
  const auto local = Register(pd.get(), c.here.base, kPage, kAllAccess);
  const auto remote = c.Remote();
  c.Show("lkey of another PD", Request(IBV_WR_RDMA_WRITE, c.there.base, remote->rkey),
         {Sge(*local, 0, kLength)}, c.there);
}

void RemoteOtherPd(ibv_context* context) {
  Case c(context);
  const auto pd = AllocatePd(context);
  const auto local = c.Local();
  const auto remote = Register(pd.get(), c.there.base, kPage, kAllAccess);
  c.Show("rkey of another PD", Request(IBV_WR_RDMA_WRITE, c.there.base, remote->rkey),
         {Sge(*local, 0, kLength)}, c.there);
}

void Deregistered(ibv_context* context) {
  Case c(context);
  const auto local = c.Local();
  auto remote = c.Remote();
  const std::uint32_t rkey = remote->rkey;
  remote.reset();
  c.Show("write after dereg", Request(IBV_WR_RDMA_WRITE, c.there.base, rkey),
         {Sge(*local, 0, kLength)}, c.there);
}

void Stale(ibv_context* context) {
  Case c(context);
  const auto local = c.Local();
  auto remote = c.Remote();
  const std::uint32_t rkey = remote->rkey;
  remote.reset();
  remote = c.Remote();
  std::cout << "the index comes again: " << (rkey >> 8 == remote->rkey >> 8)
            << ", the key does not: " << (rkey != remote->rkey) << std::endl;
  c.Show("write by a stale key", Request(IBV_WR_RDMA_WRITE, c.there.base, rkey),
         {Sge(*local, 0, kLength)}, c.there);
}

// ---- bounds and rights ----

void PastTheEnd(ibv_context* context) {
  Case c(context);
  const auto local = c.Local();
  const auto remote = c.Remote();
  c.Show("one byte past the end",
         Request(IBV_WR_RDMA_WRITE, c.there.base + kPage - kLength + 1, remote->rkey),
         {Sge(*local, 0, kLength)}, c.there);
}

void BeforeTheBeginning(ibv_context* context) {
  Case c(context);
  const auto local = c.Local();
  const auto remote = Register(c.pair.responder.pd(), c.there.base + kLength, kPage, kAllAccess);
  c.Show("one byte before the beginning",
         Request(IBV_WR_RDMA_WRITE, c.there.base + kLength - 1, remote->rkey),
         {Sge(*local, 0, kLength)}, c.there);
}

void LocalPastTheEnd(ibv_context* context) {
  Case c(context);
  const auto local = c.Local();
  const auto remote = c.Remote();
  c.Show("local, one byte past the end", Request(IBV_WR_RDMA_WRITE, c.there.base, remote->rkey),
         {Sge(*local, kPage - kLength + 1, kLength)}, c.there);
}

void ReadWriteOnly(ibv_context* context) {
  Case c(context);
  const auto local = c.Local(IBV_ACCESS_LOCAL_WRITE);
  const auto remote = c.Remote(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  c.Show("read of a write-only region", Request(IBV_WR_RDMA_READ, c.there.base, remote->rkey),
         {Sge(*local, 0, kLength)}, c.here);
}

void ReadIntoReadOnly(ibv_context* context) {
  Case c(context);
  const auto local = c.Local();
  const auto remote = c.Remote();
  c.Show("read into a region without local write",
         Request(IBV_WR_RDMA_READ, c.there.base, remote->rkey), {Sge(*local, 0, kLength)}, c.here);
}

void QpAccess(ibv_context* context) {
  PairOptions options;
  options.qp_access = IBV_ACCESS_REMOTE_READ;
  Case c(context, options);
  const auto local = c.Local();
  const auto remote = c.Remote();
  c.Show("write to a queue pair that allows reads",
         Request(IBV_WR_RDMA_WRITE, c.there.base, remote->rkey), {Sge(*local, 0, kLength)},
         c.there);
  std::cout << "  the responder is in the error state: "
            << (c.pair.responder.State() == IBV_QPS_ERR) << std::endl;
}

void Misaligned(ibv_context* context) {
  Case c(context);
  const auto local = c.Local(IBV_ACCESS_LOCAL_WRITE);
  const auto remote = c.Remote();
  auto wr = Request(IBV_WR_ATOMIC_FETCH_AND_ADD, c.there.base + 4, remote->rkey);
  wr.wr.atomic.compare_add = 1;
  c.Show("atomic across a word", wr, {Sge(*local, 0, 8)}, c.there);
}

// Its address is aligned, its word is not, and goes on in another page.
void Askew(ibv_context* context) {
  Case c(context);
  const auto local = c.Local(IBV_ACCESS_LOCAL_WRITE);
  const auto remote = Register(c.pair.responder.pd(), c.there.base + kPage - 4, 64,
                               kAllAccess | IBV_ACCESS_ZERO_BASED);
  auto wr = Request(IBV_WR_ATOMIC_FETCH_AND_ADD, nullptr, remote->rkey);
  wr.wr.atomic.compare_add = 1;
  c.Show("atomic in a zero-based region that lies askew", wr, {Sge(*local, 0, 8)}, c.there);
}

// ---- messages ----

void NoReceive(ibv_context* context) {
  Case c(context);
  const auto local = c.Local();
  c.Show("send without a receive", Request(IBV_WR_SEND), {Sge(*local, 0, kLength)}, c.there);
}

void ReceiveTooShort(ibv_context* context) {
  Case c(context);
  const auto local = c.Local();
  const auto remote = c.Remote();
  std::array<ibv_sge, 1> into{Sge(*remote, 0, kLength - 1)};
  c.pair.responder.Receive(into);
  c.Show("receive one byte too short", Request(IBV_WR_SEND), {Sge(*local, 0, kLength)}, c.there);
  std::cout << "  received: " << StatusText(c.pair.responder.Wait().first) << std::endl;
}

void NobodyThere(ibv_context* context) {
  Case c(context);
  const auto local = c.Local();
  c.pair.responder.SetState(IBV_QPS_RESET);
  c.Show("nobody answers", Request(IBV_WR_SEND), {Sge(*local, 0, kLength)}, c.there);
  std::cout << "  and the next: " << StatusText(c.pair.requester.Do(Request(IBV_WR_SEND), {}))
            << std::endl;
}

// It would wait for hours; who gives up is not kept waiting.
void FlushedWhileItWaits(ibv_context* context) {
  PairOptions options;
  options.timeout = 31;
  Case c(context, options);
  const auto local = c.Local();
  c.pair.responder.SetState(IBV_QPS_RESET);
  std::array<ibv_sge, 1> sge{Sge(*local, 0, kLength)};
  if (c.pair.requester.Post(Request(IBV_WR_SEND), sge) != 0) Die("a request was not taken");
  std::cout << "while nobody answers: " << StatusText(c.pair.requester.Wait(200).first);
  c.pair.requester.SetState(IBV_QPS_ERR);
  std::cout << ", given up: " << StatusText(c.pair.requester.Wait().first) << std::endl;
}

// A change of state that is refused has stopped the message; it goes on.
void RefusedChange(ibv_context* context) {
  Case c(context);
  // The bus master would take an hour.
  const std::uint32_t length = ByBusMaster() ? 64 << 10 : 128 << 20;
  const Memory from(0x11, length);
  const Memory to(0x22, length);
  const auto local = Register(c.pair.requester.pd(), from.base, length, 0);
  const auto remote = Register(c.pair.responder.pd(), to.base, length, kAllAccess);
  std::array<ibv_sge, 1> sge{Sge(*local, 0, length)};
  if (c.pair.requester.Post(Request(IBV_WR_RDMA_WRITE, to.base, remote->rkey), sge) != 0)
    Die("a request was not taken");
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  const int error = ibv_modify_qp(c.pair.requester.qp(), &attr, IBV_QP_STATE | IBV_QP_QKEY);
  std::cout << "a change of state that is refused: " << strerrorname_np(error)
            << ", the message: " << StatusText(c.pair.requester.Wait(kPatience).first) << ", "
            << (to.Changed() == length) << std::endl;
}

// Memory that the kernel has taken out of its own address space.
void Secret(ibv_context* context) {
  const int fd = static_cast<int>(syscall(SYS_memfd_secret, 0));
  if (fd < 0 || ftruncate(fd, 2 * kPage) != 0) {
    std::cout << "secret memory: there is none" << std::endl;
    return;
  }
  Case c(context);
  void* secret = mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (secret == MAP_FAILED) Die("secret memory cannot be mapped");
  std::memset(secret, 0x33, 2 * kPage);
  const auto local = c.Local(IBV_ACCESS_LOCAL_WRITE);
  const VerbsMr pinned(ibv_reg_mr(c.pair.responder.pd(), secret, kPage, kAllAccess), ibv_dereg_mr);
  std::cout << "secret memory: pinned " << (pinned ? "taken" : strerrorname_np(errno)) << std::endl;
  const auto remote =
      Register(c.pair.responder.pd(), secret, kPage, kAllAccess | IBV_ACCESS_ON_DEMAND);
  c.Show("secret memory on demand", Request(IBV_WR_RDMA_READ, secret, remote->rkey),
         {Sge(*local, 0, kLength)}, c.here);
}

// ---- limits ----

void TooLong(ibv_context* context) {
  ibv_device_attr device{};
  if (ibv_query_device(context, &device) != 0) Die("no device attributes");
  const auto pd = AllocatePd(context);
  const Memory memory(0x22);
  const auto registers = [&](std::uint64_t length) {
    const VerbsMr mr(ibv_reg_mr(pd.get(), memory.base, length, IBV_ACCESS_LOCAL_WRITE),
                     ibv_dereg_mr);
    return mr ? "taken" : strerrorname_np(errno);
  };
  std::cout << "a region of at most " << (device.max_mr_size >> 30) << " GiB: one byte more "
            << registers(device.max_mr_size + 1) << ", of no bytes " << registers(0) << std::endl;
}

// ---- the bus master ----

// The DMA address of the first page of a region.
std::string DmaAddress(std::uint32_t lkey) {
  std::ifstream file(kDebugfs + "tables");
  std::ostringstream wanted;
  wanted << "key_index 0x" << std::hex << (lkey >> 8) << ':';
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(wanted.str()) && std::getline(file, line)) {
      std::istringstream words(line);
      std::string index;
      std::string address;
      words >> index >> address;
      return address;
    }
  }
  Die("no table of " + wanted.str());
}

bool BusMasterCopies(const std::string& to, const std::string& from) {
  std::ofstream file(kDebugfs + "dma_copy");
  file << to << ' ' << from << ' ' << kLength << std::endl;
  return static_cast<bool>(file);
}

void BusMaster(ibv_context* context) {
  const auto pd = AllocatePd(context);
  const Memory here(0x11);
  const Memory there(0x22);
  const auto source = Register(pd.get(), here.base, kPage, IBV_ACCESS_LOCAL_WRITE);
  auto target = Register(pd.get(), there.base, kPage, IBV_ACCESS_LOCAL_WRITE);
  const std::string from = DmaAddress(source->lkey);
  const std::string to = DmaAddress(target->lkey);
  std::cout << "the bus master copies: " << BusMasterCopies(to, from);
  std::cout << ", " << there.Changed() << " bytes changed" << std::endl;
  std::memset(there.base, 0x22, there.length);
  target.reset();
  std::cout << "and after dereg: " << BusMasterCopies(to, from);
  std::cout << ", " << there.Changed() << " bytes changed" << std::endl;
}

// ---- taken away ----

class LargeMessage {
 public:
  explicit LargeMessage(ibv_context* context)
      : pair(context),
        local(Register(pair.requester.pd(), from_.base, kLarge, 0)),
        remote(Register(pair.responder.pd(), to_.base, kLarge, kAllAccess)) {
    std::array<ibv_sge, 1> sge{Sge(*local, 0, kLarge)};
    if (pair.requester.Post(Request(IBV_WR_RDMA_WRITE, to_.base, remote->rkey), sge) != 0)
      Die("a request was not taken");
    usleep(500'000);
  }
  // What it ends with after `take`, and whether that was soon.
  void Take(const std::string& name, const std::function<void()>& take, bool completes = true) {
    constexpr auto kSoon = std::chrono::seconds(20);
    const auto begun = std::chrono::steady_clock::now();
    take();
    const int status = completes ? pair.requester.Wait(kPatience).first : kNone;
    std::cout << name << ": " << StatusText(status)
              << ", soon: " << (std::chrono::steady_clock::now() - begun < kSoon) << std::endl;
  }

 private:
  static constexpr std::size_t kLarge = 8 << 20;
  Memory from_{0x11, kLarge};
  Memory to_{0x22, kLarge};

 public:
  Pair pair;
  VerbsMr local;
  VerbsMr remote;
};

void TakenAway(ibv_context* context) {
  {
    LargeMessage one(context);
    one.Take("the remote region", [&] { one.remote.reset(); });
  }
  {
    LargeMessage one(context);
    one.Take("the local region", [&] { one.local.reset(); });
  }
  {
    LargeMessage one(context);
    one.Take("the responder", [&] { one.pair.responder.SetState(IBV_QPS_ERR); });
  }
  {
    LargeMessage one(context);
    one.Take("the responder's queue pair", [&] { one.pair.responder.ReplaceQp(); });
  }
  {
    LargeMessage one(context);
    one.Take(
        "the requester", [&] { one.pair.requester.SetState(IBV_QPS_RESET); }, false);
  }
  // And all at once, as a process that is killed does.
  const LargeMessage left(context);
  std::cout << "killed" << std::endl;
  raise(SIGKILL);
}

const std::vector<Test> kTests = {
    Write,
    Read,
    WriteNothing,
    ZeroBased,
    OwnIova,
    Reregistered,
    Inline,
    Invalidate,
    OtherPd,
    RemoteOtherPd,
    Deregistered,
    Stale,
    PastTheEnd,
    BeforeTheBeginning,
    LocalPastTheEnd,
    ReadWriteOnly,
    ReadIntoReadOnly,
    QpAccess,
    Misaligned,
    Askew,
    NoReceive,
    ReceiveTooShort,
    NobodyThere,
    FlushedWhileItWaits,
    RefusedChange,
    Secret,
    TooLong,
};

}  // namespace

int main(int argc, char** argv) {
  auto context = mrscope::Context::Open("mrlab0");
  if (!context) Die(context.error().message);
  if (argc == 2 && std::string(argv[1]) == "dma") {
    BusMaster(context->get());
    return 0;
  }
  if (argc == 2 && std::string(argv[1]) == "taken") {
    TakenAway(context->get());
    return 0;
  }
  for (const auto& test : kTests) test(context->get());
  return 0;
}
