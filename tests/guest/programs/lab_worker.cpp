// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Regions, transfers that must succeed, and requests that must be refused. What
// is cut short is in lab_cut_short.cpp.

#include "lab_worker.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <utility>

#include "lab_counts.h"

namespace {

constexpr std::size_t kMostRegions = 5;  // of a side
constexpr std::uint32_t kDepth = 32;
constexpr std::uint32_t kMostSges = 4;
constexpr std::uint32_t kMostInline = 256;
constexpr int kPatience = 60'000;  // ms

constexpr unsigned kKindOfRegion =
    IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB;

constexpr std::array<unsigned, 6> kRights = {kAllAccess,
                                             kAllAccess,
                                             IBV_ACCESS_LOCAL_WRITE,
                                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
                                             IBV_ACCESS_REMOTE_READ,
                                             0};

constexpr std::array kBlocks = {
    Block::Kind::kTouched, Block::Kind::kUntouched, Block::Kind::kHugePages, Block::Kind::kHugetlb,
    Block::Kind::kShared,  Block::Kind::kOnDemand,  Block::Kind::kOnDemand};

bool IsAtomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

bool IsSend(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV;
}

// Takes one of the receives that are posted at the peer.
bool TakesReceive(ibv_wr_opcode opcode) {
  return IsSend(opcode) || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

Did CountOf(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
      return Did::kWrite;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return Did::kWriteImm;
    case IBV_WR_SEND:
      return Did::kSend;
    case IBV_WR_SEND_WITH_IMM:
      return Did::kSendImm;
    case IBV_WR_RDMA_READ:
      return Did::kRead;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return Did::kCompareSwap;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return Did::kFetchAdd;
    default:
      return Did::kSendInvalidate;
  }
}

}  // namespace

// ---- what it has ----

Worker::Link::Link(ibv_context* context, ibv_qp_type type)
    : type(type),
      pair(context, {.type = type,
                     .depth = kDepth,
                     .max_sge = kMostSges,
                     .max_inline = kMostInline,
                     .reads = 4}) {}

Worker::Worker(ibv_context* context, std::uint64_t seed, bool one_mapping)
    : seed_(seed), one_mapping_(one_mapping), random_(seed) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC})
    links_.push_back(std::make_unique<Link>(context, type));
}

void Worker::Step() {
  ++step_;
  const std::uint64_t dice = random_.Below(1000);
  if (dice < 60) {
    AddRegion(SomeLink(), random_.Below(2));
  } else if (dice < 100) {
    RemoveRegion();
  } else if (dice < 160) {
    ChangeRegion();
  } else if (dice < 190) {
    Discard();
  } else if (dice < 210) {
    Prefetch();
  } else if (dice < 270) {
    BeRefused();
  } else if (dice < 300) {
    CutShort();
  } else if (dice < 310) {
    Reconnect(SomeLink());
  } else if (dice < 318) {
    Fork();
  } else if (dice < 330) {
    VerifyAll();
  } else {
    Transfer();
  }
}

void Worker::Wrong(const std::string& what) const {
  std::fprintf(stderr, "seed %" PRIu64 ", step %" PRIu64 ": %s\n", seed_, step_, what.c_str());
  _exit(1);
}

void Worker::Verify(Region& region) {
  const auto wrong = region.block().Wrong();
  if (!wrong) return;
  const std::size_t place = region.Place(0);
  Wrong("byte " + std::to_string(*wrong) + " is not what it must be, in a block of " +
        std::to_string(region.block().size()) + " of kind " +
        std::to_string(static_cast<int>(region.block().kind())) + " with a region at " +
        std::to_string(place) + " of " + std::to_string(region.length()));
}

void Worker::VerifyAll() {
  ForEachRegion([this](Region& region, ibv_pd*) { Verify(region); });
}

void Worker::ForEachRegion(const std::function<void(Region&, ibv_pd*)>& what) {
  for (const auto& link : links_)
    for (const std::size_t side : {0, 1})
      for (const auto& region : link->regions[side]) what(*region, link->side(side).pd());
}

void Worker::Reconnect(Link& link) {
  for (const std::size_t side : {0, 1}) link.side(side).SetState(IBV_QPS_RESET);
  for (const std::size_t side : {0, 1}) {
    ibv_wc wc{};
    if (ibv_poll_cq(link.side(side).cq(), 1, &wc) != 0)
      Wrong("a completion of a queue pair that was reset");
    link.side(side).Connect(link.side(1 - side).qp()->qp_num);
  }
  Count(Did::kReconnect);
}

// A child that writes to its own copy of all memory, and may outlive the parent.
void Worker::Fork() {
  const auto linger = static_cast<useconds_t>(random_.Below(20'000));
  Count(Did::kFork);
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  if (fork() != 0) return;
  ForEachRegion([](Region& region, ibv_pd*) {
    Block& block = region.block();
    if (block.kind() == Block::Kind::kShared || block.kind() == Block::Kind::kHugetlb) return;
    for (std::size_t at = 0; at < block.size(); at += kPage) block.data()[at] ^= 1;
  });
  usleep(linger);
  _exit(0);
}

std::size_t Worker::SomeLength(std::size_t most) {
  const std::uint64_t dice = random_.Below(10);
  const std::size_t limit = dice < 3 ? 64 : dice < 7 ? 8192 : most;
  return 1 + random_.Below(std::min(limit, most));
}

// ---- regions ----

std::unique_ptr<Region> Worker::NewRegion(ibv_pd* pd, std::shared_ptr<Block> block, unsigned access,
                                          bool large) {
  // A large one leaves a part of its first and of its last page.
  const std::size_t size = block->size();
  Region::Shape shape;
  shape.offset = random_.Below(large ? kPage : size / 2);
  shape.length =
      large ? size - shape.offset - random_.Below(kPage) : 1 + random_.Below(size - shape.offset);
  shape.access = access;
  const auto address = reinterpret_cast<std::uintptr_t>(block->data() + shape.offset);
  shape.base = address;
  if (random_.Percent(10)) {
    shape.access |= IBV_ACCESS_ZERO_BASED;
    shape.base = 0;
  } else if (random_.Percent(10)) {
    // Aligned alike, in huge pages too.
    shape.base = (random_.Below(1U << 20) * kHugePage) | (address % kHugePage);
  }
  return std::make_unique<Region>(pd, std::move(block), shape);
}

void Worker::AddRegion(Link& link, std::size_t side) {
  auto& regions = link.regions[side];
  if (regions.size() == kMostRegions) regions.erase(regions.begin());
  const auto kind = random_.Of(kBlocks);
  // Now and then two regions of the same memory.
  const bool shares = !regions.empty() && random_.Percent(25) &&
                      !(one_mapping_ && regions.back()->block().kind() == Block::Kind::kOnDemand);
  auto block = shares ? regions.back()->shared_block() : Block::Create(kind, random_);
  unsigned access = random_.Of(kRights);
  if (block->kind() == Block::Kind::kOnDemand) access |= IBV_ACCESS_ON_DEMAND;
  regions.push_back(NewRegion(link.side(side).pd(), std::move(block), Permit(access)));
}

void Worker::RemoveRegion() {
  auto& regions = SomeLink().regions[random_.Below(2)];
  if (regions.empty()) return;
  const auto at = regions.begin() + static_cast<std::ptrdiff_t>(random_.Below(regions.size()));
  Verify(**at);
  regions.erase(at);
}

void Worker::ChangeRegion() {
  Link& link = SomeLink();
  const std::size_t side = random_.Below(2);
  auto& regions = link.regions[side];
  if (regions.empty()) return;
  const std::size_t at = random_.Below(regions.size());
  Region& region = *regions[at];
  switch (random_.Below(3)) {
    case 0:
      region.ChangeAccess(Permit(random_.Of(kRights) | (region.access() & kKindOfRegion)));
      break;
    case 1:
      // To the other side, with all of its memory.
      if (region.shared_block().use_count() > 1) return;
      region.ChangePd(link.side(1 - side).pd());
      link.regions[1 - side].push_back(std::move(regions[at]));
      regions.erase(regions.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    default: {
      auto block = Block::Create(region.block().kind(), random_);
      const std::size_t offset = random_.Below(block->size() / 2);
      const std::size_t length = 1 + random_.Below(block->size() - offset);
      region.ChangeTranslation(std::move(block), offset, length);
    }
  }
}

void Worker::Discard() {
  ForEachRegion([this](Region& region, ibv_pd*) {
    Block& block = region.block();
    if (block.kind() != Block::Kind::kOnDemand) return;
    const std::size_t first = random_.Below(block.size() / kPage);
    const std::size_t pages = 1 + random_.Below(block.size() / kPage - first);
    block.Discard(first * kPage, pages * kPage);
    Count(Did::kDiscard);
  });
}

void Worker::Prefetch() {
  ForEachRegion([this](Region& region, ibv_pd* pd) {
    if ((region.access() & IBV_ACCESS_ON_DEMAND) == 0) return;
    // The rights of one that is invalidated count, too.
    const bool write =
        one_mapping_ || (region.Allows(IBV_ACCESS_LOCAL_WRITE) && random_.Percent(50));
    ibv_sge sge = SomeOf(region, region.length()).Sge();
    if (ibv_advise_mr(pd,
                      write ? IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE : IBV_ADVISE_MR_ADVICE_PREFETCH,
                      IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1) != 0)
      Wrong("a prefetch was refused");
    Count(Did::kPrefetch);
  });
}

// One that allows it, made if there is none.
Region& Worker::RegionWith(Link& link, std::size_t side, unsigned right) {
  std::vector<Region*> fit;
  for (const auto& region : link.regions[side])
    if (region->Allows(right)) fit.push_back(region.get());
  if (!fit.empty()) return *random_.Of(fit);
  link.regions[side].push_back(
      NewRegion(link.side(side).pd(), Block::Create(Block::Kind::kTouched, random_), kAllAccess));
  return *link.regions[side].back();
}

// ---- transfers that must succeed ----

Worker::Piece Worker::SomeOf(Region& region, std::size_t length) {
  length = std::min(length, region.length());
  return {&region, random_.Below(region.length() - length + 1), static_cast<std::uint32_t>(length)};
}

// Some pieces that have so many bytes together, or less.
Worker::Pieces Worker::Split(Link& link, std::size_t side, unsigned right, std::size_t length) {
  Pieces pieces;
  const std::uint64_t most = 1 + random_.Below(kMostSges);
  while (length > 0 && pieces.size() < most) {
    const bool last = pieces.size() + 1 == most;
    pieces.push_back(
        SomeOf(RegionWith(link, side, right), last ? length : 1 + random_.Below(length)));
    length -= pieces.back().length;
  }
  return pieces;
}

namespace {

template <typename Pieces>
std::uint32_t Total(const Pieces& pieces) {
  std::uint32_t total = 0;
  for (const auto& piece : pieces) total += piece.length;
  return total;
}

}  // namespace

// Aligned for both, the device and the memory.
void Worker::PlanAtomic(Link& link, std::size_t from, Request& request) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  Region& region = RegionWith(link, 1 - from, IBV_ACCESS_REMOTE_ATOMIC);
  const std::size_t first = -region.Address(0) % kWord;
  const Piece word{&region, first, kWord};
  if (first + kWord > region.length() ||
      reinterpret_cast<std::uintptr_t>(word.Memory()) % kWord != 0)
    return;
  auto local = Split(link, from, IBV_ACCESS_LOCAL_WRITE, kWord);
  if (Total(local) < kWord) return;
  request.wr.opcode = random_.Percent(50) ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
  request.local = std::move(local);
  request.remote = {word};
  request.length = kWord;
  auto& atomic = request.wr.wr.atomic;
  atomic.remote_addr = region.Address(first);
  atomic.rkey = region.key();
  atomic.swap = random_.Next();
  std::memcpy(&atomic.compare_add, word.Expected(), kWord);
  if (random_.Percent(30)) ++atomic.compare_add;
}

void Worker::PlanSend(Link& link, std::size_t from, std::size_t most, Request& request) {
  request.wr.opcode = random_.Percent(50) ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM;
  request.remote = Split(link, 1 - from, IBV_ACCESS_LOCAL_WRITE, SomeLength(most));
  request.local = Split(link, from, 0, 1 + random_.Below(Total(request.remote)));
  request.length = Total(request.local);
  // What is invalidated is none of what receives.
  if (link.type != IBV_QPT_RC || !random_.Percent(15)) return;
  for (const auto& region : link.regions[1 - from]) {
    const bool receives =
        std::any_of(request.remote.begin(), request.remote.end(),
                    [&](const Piece& piece) { return piece.region == region.get(); });
    if (receives || (region->access() & kAllAccess & ~unsigned{IBV_ACCESS_LOCAL_WRITE}) == 0 ||
        region->invalidated())
      continue;
    request.wr.opcode = IBV_WR_SEND_WITH_INV;
    request.wr.invalidate_rkey = region->key();
    return;
  }
}

Worker::Request Worker::Plan(Link& link, std::size_t from, std::size_t most) {
  Request request;
  const bool reliable = link.type == IBV_QPT_RC;
  const std::uint64_t dice = random_.Below(reliable ? 10 : 6);
  request.wr.imm_data = static_cast<std::uint32_t>(random_.Next());
  if (dice < 2) PlanSend(link, from, most, request);
  if (dice == 9) PlanAtomic(link, from, request);
  if (request.length == 0) {
    const bool read = dice >= 6;
    request.wr.opcode = read                  ? IBV_WR_RDMA_READ
                        : random_.Percent(30) ? IBV_WR_RDMA_WRITE_WITH_IMM
                                              : IBV_WR_RDMA_WRITE;
    Region& region =
        RegionWith(link, 1 - from, read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE);
    request.local = Split(link, from, read ? IBV_ACCESS_LOCAL_WRITE : 0,
                          SomeLength(std::min(most, region.length())));
    request.length = Total(request.local);
    request.remote = {SomeOf(region, request.length)};
    request.wr.wr.rdma.remote_addr = region.Address(request.remote[0].offset);
    request.wr.wr.rdma.rkey = region.key();
  }
  const bool outward = request.wr.opcode != IBV_WR_RDMA_READ && !IsAtomic(request.wr.opcode);
  if (outward && request.length <= kMostInline && random_.Percent(30)) {
    request.inlined.resize(request.length);
    std::generate(request.inlined.begin(), request.inlined.end(),
                  [this] { return static_cast<std::uint8_t>(random_.Next()); });
    request.wr.send_flags |= IBV_SEND_INLINE;
  } else if (outward) {
    for (const Piece& piece : request.local)
      piece.region->block().Scribble(piece.region->Place(piece.offset), piece.length, random_);
  }
  return request;
}

void Worker::PostReceive(Side& side, const Request& request, std::uint64_t id) {
  std::vector<ibv_sge> sges;
  if (IsSend(request.wr.opcode))
    for (const Piece& piece : request.remote) sges.push_back(piece.Sge());
  if (side.Receive(sges, id) != 0) Wrong("a receive was not taken");
}

// Inlined bytes are the caller's again at once.
void Worker::PostSend(Side& side, Request& request) {
  std::vector<ibv_sge> sges;
  auto inlined = request.inlined;
  if (inlined.empty()) {
    for (const Piece& piece : request.local) sges.push_back(piece.Sge());
  } else {
    sges.push_back({reinterpret_cast<std::uintptr_t>(inlined.data()), request.length, 0});
  }
  if (const int error = side.Post(request.wr, sges))
    Wrong(std::string("a request was not taken: ") + std::strerror(error));
  std::fill(inlined.begin(), inlined.end(), 0xee);
}

// What it does to the bytes.
void Worker::Apply(const Request& request) {
  const auto gather = [](const Pieces& pieces, std::size_t length) {
    std::vector<std::uint8_t> bytes;
    for (const Piece& piece : pieces)
      bytes.insert(bytes.end(), piece.Expected(), piece.Expected() + piece.length);
    bytes.resize(length);
    return bytes;
  };
  const auto scatter = [](const Pieces& pieces, const std::vector<std::uint8_t>& bytes) {
    auto from = bytes.begin();
    for (const Piece& piece : pieces) {
      const auto left = std::min<std::ptrdiff_t>(piece.length, bytes.end() - from);
      std::copy(from, from + left, piece.Expected());
      from += left;
    }
  };
  const ibv_wr_opcode opcode = request.wr.opcode;
  if (!IsAtomic(opcode) && opcode != IBV_WR_RDMA_READ) {
    scatter(request.remote,
            request.inlined.empty() ? gather(request.local, request.length) : request.inlined);
    return;
  }
  scatter(request.local, gather(request.remote, request.length));
  if (opcode == IBV_WR_RDMA_READ) return;
  const auto& atomic = request.wr.wr.atomic;
  std::uint64_t word = 0;
  std::memcpy(&word, request.remote[0].Expected(), sizeof word);
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    word += atomic.compare_add;
  } else if (word == atomic.compare_add) {
    word = atomic.swap;
  }
  std::memcpy(request.remote[0].Expected(), &word, sizeof word);
}

void Worker::ExpectSent(Side& side, const std::vector<Request>& requests) {
  for (const Request& request : requests) {
    if ((request.wr.send_flags & IBV_SEND_SIGNALED) == 0) continue;
    const auto [status, wc] = side.Wait(kPatience);
    if (status != IBV_WC_SUCCESS || wc.wr_id != request.wr.wr_id)
      Wrong("request " + std::to_string(request.wr.wr_id) + " of " +
            std::to_string(requests.size()) + ": " + StatusText(status) + ", of request " +
            std::to_string(wc.wr_id));
  }
}

void Worker::ExpectReceived(Side& side, const std::vector<Request>& requests) {
  for (const Request& request : requests) {
    const ibv_wr_opcode opcode = request.wr.opcode;
    if (!TakesReceive(opcode)) continue;
    const auto [status, wc] = side.Wait(kPatience);
    const bool invalidates = opcode == IBV_WR_SEND_WITH_INV;
    const bool bare = opcode == IBV_WR_SEND;
    const unsigned flags = bare ? 0 : invalidates ? IBV_WC_WITH_INV : IBV_WC_WITH_IMM;
    const std::uint32_t word = invalidates ? request.wr.invalidate_rkey : request.wr.imm_data;
    if (status != IBV_WC_SUCCESS || wc.wr_id != request.wr.wr_id || wc.byte_len != request.length ||
        wc.wc_flags != flags ||
        (!bare && (invalidates ? wc.invalidated_rkey : wc.imm_data) != word) ||
        wc.opcode != (IsSend(opcode) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM))
      Wrong("receive " + std::to_string(request.wr.wr_id) + ": " + StatusText(status) + ", " +
            std::to_string(wc.byte_len) + " of " + std::to_string(request.length) +
            " bytes, opcode " + std::to_string(wc.opcode) + " of " + std::to_string(opcode) +
            ", flags " + std::to_string(wc.wc_flags) + ", word " + std::to_string(wc.imm_data) +
            " of " + std::to_string(word));
  }
}

// One or many at once, carried out in their order.
void Worker::Transfer() {
  Link& link = SomeLink();
  const std::size_t from = random_.Below(2);
  Side& sender = link.side(from);
  Side& receiver = link.side(1 - from);
  const std::size_t count = random_.Percent(70) ? 1 : 2 + random_.Below(kDepth - 2);
  std::vector<Request> requests;
  do {
    requests.push_back(Plan(link, from, count == 1 ? std::size_t{4} << 20 : 65536));
    requests.back().wr.wr_id = requests.size();
    // After it nothing may use that key.
  } while (requests.size() < count && requests.back().wr.opcode != IBV_WR_SEND_WITH_INV);
  for (Request& request : requests) {
    if (&request == &requests.back() || random_.Percent(30))
      request.wr.send_flags |= IBV_SEND_SIGNALED;
    if (TakesReceive(request.wr.opcode)) PostReceive(receiver, request, request.wr.wr_id);
  }
  for (Request& request : requests) {
    PostSend(sender, request);
    Apply(request);
  }
  ExpectSent(sender, requests);
  ExpectReceived(receiver, requests);
  for (const Request& request : requests) {
    Count(CountOf(request.wr.opcode));
    Count(Did::kBytes, request.length);
    if (!request.inlined.empty()) Count(Did::kInline);
    if (link.type == IBV_QPT_UC) Count(Did::kUnreliable);
    for (const Pieces* pieces : {&request.local, &request.remote})
      for (const Piece& piece : *pieces) Verify(*piece.region);
  }
  if (const ibv_send_wr& last = requests.back().wr; last.opcode == IBV_WR_SEND_WITH_INV) {
    for (const auto& region : link.regions[1 - from])
      if (region->key() == last.invalidate_rkey) region->Invalidate();
  }
}

// ---- requests that must be refused ----

// A write of one byte, to where it may not go; the peer's word for it is the
// status, and of what is unreliable there is none.
void Worker::BeRefused() {
  Link& link = SomeLink();
  const std::size_t from = random_.Below(2);
  Region& source = RegionWith(link, from, 0);
  Region& target = RegionWith(link, 1 - from, IBV_ACCESS_REMOTE_WRITE);
  ibv_pd* pd = link.side(1 - from).pd();
  auto wr = ::Request(IBV_WR_RDMA_WRITE);
  wr.wr.rdma.remote_addr = target.Address(0);
  wr.wr.rdma.rkey = target.key();
  std::array<ibv_sge, 1> sge{Piece{&source, 0, 1}.Sge()};
  int wanted = link.type == IBV_QPT_RC ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS;
  std::unique_ptr<Region> extra;
  switch (random_.Below(6)) {
    case 0:
      wr.wr.rdma.remote_addr = target.Address(target.length());
      break;
    case 1:
      wr.wr.rdma.remote_addr = target.Address(0) - 1;
      break;
    case 2:  // of another domain
      wr.wr.rdma.remote_addr = source.Address(0);
      wr.wr.rdma.rkey = source.key();
      break;
    case 3: {  // no more
      extra = NewRegion(pd, target.shared_block(), target.access() & ~IBV_ACCESS_ZERO_BASED);
      wr.wr.rdma.remote_addr = extra->Address(0);
      wr.wr.rdma.rkey = extra->key();
      extra.reset();
      break;
    }
    case 4:  // whose memory is gone
      extra = NewRegion(pd, Block::Create(Block::Kind::kOnDemand, random_),
                        kAllAccess | IBV_ACCESS_ON_DEMAND);
      wr.wr.rdma.remote_addr = extra->Address(0);
      wr.wr.rdma.rkey = extra->key();
      extra->block().Unmap();
      break;
    default:
      sge[0].addr = source.Address(source.length());
      wanted = IBV_WC_LOC_PROT_ERR;
  }
  const int status = link.side(from).Do(wr, sge);
  if (status != wanted)
    Wrong("what must be refused: " + StatusText(status) + ", wanted " + StatusText(wanted));
  Verify(target);
  Verify(source);
  Count(Did::kRefused);
  Reconnect(link);
}
