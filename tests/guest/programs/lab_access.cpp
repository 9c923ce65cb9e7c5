// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What mrlab0 lets through, and what it refuses: a line for each case,
//   NAME: STATUS, N bytes changed, refused REASON...
// STATUS is the requester's completion; the bytes are those of the memory that
// was not to be reached (or was, where the case is a control); the reasons are
// what the device has counted meanwhile.
//
// Usage: lab_access [dma]
//   dma: the cases of the bus master, which need the edu device and an IOMMU

#include <algorithm>
#include <array>
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
  for (const auto& test : kTests) test(context->get());
  return 0;
}
