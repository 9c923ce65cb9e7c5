// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Transfers that something is taken away from while they are under way. Each
// request ends in one of the ways that are allowed, each byte of the target is
// the old or the new one, and once the call that took it away has returned,
// nothing changes any more.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "lab_counts.h"
#include "lab_worker.h"

namespace {

constexpr int kPatience = 60'000;  // ms

enum class Takes {
  kLocalRegion,
  kRemoteRegion,
  kRemoteRights,
  kRequesterFails,
  kRequesterResets,
  kRequesterGoes,
  kResponderFails,
  kResponderResets,
  kResponderGoes,
  kPages,    // of what is on demand
  kNothing,  // forks
  kWays
};

}  // namespace

struct Worker::Flight {
  Link& link;
  std::size_t from;
  Takes takes;
  std::size_t count;
  // The memory outlives the regions.
  std::shared_ptr<Block> local_block;
  std::shared_ptr<Block> remote_block;
  std::unique_ptr<Region> local;
  std::unique_ptr<Region> remote;
  std::size_t length = 0;
  const std::uint8_t* source = nullptr;  // what it must be
  const std::uint8_t* target = nullptr;
  std::uint8_t* target_expected = nullptr;

  Side& requester() const { return link.side(from); }
  Side& responder() const { return link.side(1 - from); }
  bool reliable() const { return link.type == IBV_QPT_RC; }
};

void Worker::Act(Flight& flight) {
  switch (flight.takes) {
    case Takes::kLocalRegion:
      flight.local.reset();
      break;
    case Takes::kRemoteRegion:
      flight.remote.reset();
      break;
    case Takes::kRemoteRights:
      flight.remote->ChangeAccess(IBV_ACCESS_LOCAL_WRITE | (flight.remote->access() & ~kAllAccess));
      break;
    case Takes::kRequesterFails:
      flight.requester().SetState(IBV_QPS_ERR);
      break;
    case Takes::kRequesterResets:
      flight.requester().SetState(IBV_QPS_RESET);
      break;
    case Takes::kRequesterGoes:
      flight.requester().ReplaceQp();
      break;
    case Takes::kResponderFails:
      flight.responder().SetState(IBV_QPS_ERR);
      break;
    case Takes::kResponderResets:
      flight.responder().SetState(IBV_QPS_RESET);
      break;
    case Takes::kResponderGoes:
      flight.responder().ReplaceQp();
      break;
    case Takes::kPages:
      for (const Region* region : {flight.local.get(), flight.remote.get()})
        madvise(region->block().data(), region->block().size(), MADV_DONTNEED);
      break;
    default:
      Fork();
  }
}

// How the first request that fails may end; those after it are flushed.
static std::set<int> Ends(Takes takes, bool reliable) {
  std::set<int> ends{IBV_WC_SUCCESS};
  if (takes == Takes::kLocalRegion) ends.insert(IBV_WC_LOC_PROT_ERR);
  if (takes == Takes::kRequesterFails) ends.insert(IBV_WC_WR_FLUSH_ERR);
  if (!reliable) return ends;
  if (takes == Takes::kRemoteRegion || takes == Takes::kRemoteRights)
    ends.insert(IBV_WC_REM_ACCESS_ERR);
  if (takes == Takes::kResponderFails || takes == Takes::kResponderResets ||
      takes == Takes::kResponderGoes)
    ends.insert(IBV_WC_RETRY_EXC_ERR);
  return ends;
}

void Worker::ExpectEnds(const Flight& flight) {
  // Their completions went with them.
  if (flight.takes == Takes::kRequesterResets || flight.takes == Takes::kRequesterGoes) return;
  const std::set<int> allowed = Ends(flight.takes, flight.reliable());
  bool failed = false;
  for (std::size_t i = 0; i < flight.count; ++i) {
    const auto [status, wc] = flight.requester().Wait(kPatience);
    const bool good = failed ? status == IBV_WC_WR_FLUSH_ERR : allowed.count(status) != 0;
    if (!good || wc.wr_id != i)
      Wrong("transfer " + std::to_string(i) + " of " + std::to_string(flight.count) + ", way " +
            std::to_string(static_cast<int>(flight.takes)) + ": " + StatusText(status));
    failed = failed || status != IBV_WC_SUCCESS;
  }
  if (failed) Count(Did::kCutShort);
}

void Worker::ExpectOldOrNew(const Flight& flight) {
  for (std::size_t i = 0; i < flight.length; ++i) {
    const std::uint8_t now = flight.target[i];
    const bool zero = flight.takes == Takes::kPages && now == 0;
    const bool old = flight.takes != Takes::kNothing && now == flight.target_expected[i];
    if (!zero && !old && now != flight.source[i])
      Wrong("byte " + std::to_string(i) + " is neither old nor new, way " +
            std::to_string(static_cast<int>(flight.takes)));
  }
}

void Worker::CutShort() {
  Link& link = SomeLink();
  const bool read = link.type == IBV_QPT_RC && random_.Percent(40);
  const auto takes = static_cast<Takes>(random_.Below(static_cast<std::uint64_t>(Takes::kWays)));
  const bool on_demand = takes == Takes::kPages || random_.Percent(30);
  const auto kind = on_demand             ? Block::Kind::kOnDemand
                    : random_.Percent(50) ? Block::Kind::kHugePages
                                          : Block::Kind::kTouched;
  const unsigned access = kAllAccess | (on_demand ? unsigned{IBV_ACCESS_ON_DEMAND} : 0);
  Flight flight{.link = link,
                .from = random_.Below(2),
                .takes = takes,
                .count = 1 + random_.Below(12),
                .local_block = Block::Create(kind, random_, true),
                .remote_block = Block::Create(kind, random_, true),
                .local = {},
                .remote = {}};
  flight.local = NewRegion(flight.requester().pd(), flight.local_block, access, true);
  flight.remote = NewRegion(flight.responder().pd(), flight.remote_block, access, true);
  flight.length = std::min(flight.local->length(), flight.remote->length());
  const Piece local = SomeOf(*flight.local, flight.length);
  const Piece remote = SomeOf(*flight.remote, flight.length);
  flight.source = (read ? remote : local).Expected();
  flight.target = (read ? local : remote).Memory();
  flight.target_expected = (read ? local : remote).Expected();

  auto wr = ::Request(read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE);
  wr.wr.rdma.remote_addr = flight.remote->Address(remote.offset);
  wr.wr.rdma.rkey = flight.remote->key();
  std::array<ibv_sge, 1> sge{local.Sge()};
  const auto pause = static_cast<useconds_t>(random_.Below(2) * random_.Below(5000));
  for (wr.wr_id = 0; wr.wr_id < flight.count; ++wr.wr_id)
    if (flight.requester().Post(wr, sge) != 0) Wrong("a transfer was not taken");
  if (pause > 0) usleep(pause);
  Act(flight);

  const bool goes_on = takes == Takes::kPages || takes == Takes::kNothing;
  const std::vector<std::uint8_t> then(flight.target, flight.target + flight.length);
  ExpectEnds(flight);
  if (!goes_on && !std::equal(then.begin(), then.end(), flight.target))
    Wrong("bytes changed after that, way " + std::to_string(static_cast<int>(takes)));
  ExpectOldOrNew(flight);
  if (takes == Takes::kPages)
    for (Block* block : {flight.local_block.get(), flight.remote_block.get()})
      std::ranges::fill(block->expected(), 0);
  std::copy_n(flight.target, flight.length, flight.target_expected);
  for (const Block* block : {flight.local_block.get(), flight.remote_block.get()})
    if (block->Wrong()) Wrong("a byte beside the target changed");
  Count(Did::kUnderWay);
  Reconnect(link);
}
