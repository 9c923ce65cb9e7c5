// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// One process of lab_stress: pairs of queue pairs, regions on both sides, and
// what is done with them, by chance. It knows of each byte what it must be.

#ifndef TESTS_GUEST_LAB_WORKER_H_
#define TESTS_GUEST_LAB_WORKER_H_

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lab_block.h"
#include "lab_region.h"
#include "pair.h"
#include "random.h"

class Worker {
 public:
  // With one_mapping no page is mapped for the device twice: the kernel's
  // ib_umem_odp_map_dma_and_lock() does that with what regions on demand share,
  // the page of zeros included, and kernels that check the use of the DMA API
  // complain of it.
  Worker(ibv_context* context, std::uint64_t seed, bool one_mapping);
  // What is wrong ends the process: it prints the seed and the step.
  void Step();

 private:
  // Two sides; the regions of one never share memory with those of the other.
  struct Link {
    Link(ibv_context* context, ibv_qp_type type);
    Side& side(std::size_t at) { return at == 0 ? pair.requester : pair.responder; }

    ibv_qp_type type;
    Pair pair;
    std::array<std::vector<std::unique_ptr<Region>>, 2> regions;
  };
  // Bytes of a region.
  struct Piece {
    Region* region;
    std::size_t offset;
    std::uint32_t length;

    ibv_sge Sge() const { return {region->Address(offset), length, region->key()}; }
    std::uint8_t* Expected() const { return &region->block().expected()[region->Place(offset)]; }
    std::uint8_t* Memory() const { return region->block().data() + region->Place(offset); }
  };
  using Pieces = std::vector<Piece>;
  struct Request {
    ibv_send_wr wr{};
    Pieces local;
    std::vector<std::uint8_t> inlined;
    Pieces remote;  // one, or what was posted to receive
    std::uint32_t length = 0;
  };
  // A transfer that something is taken away from, on both sides.
  struct Flight;

  // Regions.
  void AddRegion(Link& link, std::size_t side);
  void RemoveRegion();
  void ChangeRegion();
  void Discard();
  void Prefetch();
  Region& RegionWith(Link& link, std::size_t side, unsigned right);
  std::unique_ptr<Region> NewRegion(ibv_pd* pd, std::shared_ptr<Block> block, unsigned access,
                                    bool large = false);

  // Transfers that must succeed.
  void Transfer();
  Request Plan(Link& link, std::size_t from, std::size_t most);
  void PlanAtomic(Link& link, std::size_t from, Request& request);
  void PlanSend(Link& link, std::size_t from, std::size_t most, Request& request);
  Pieces Split(Link& link, std::size_t side, unsigned right, std::size_t length);
  Piece SomeOf(Region& region, std::size_t length);
  void PostReceive(Side& side, const Request& request, std::uint64_t id);
  void PostSend(Side& side, Request& request);
  static void Apply(const Request& request);
  void ExpectSent(Side& side, const std::vector<Request>& requests);
  void ExpectReceived(Side& side, const std::vector<Request>& requests);

  // Requests that must be refused.
  void BeRefused();

  // Transfers that are cut short.
  void CutShort();
  void Act(Flight& flight);
  void ExpectEnds(const Flight& flight);
  void ExpectOldOrNew(const Flight& flight);

  // What holds after all.
  void Reconnect(Link& link);
  void Fork();
  void Verify(Region& region);
  void VerifyAll();
  void ForEachRegion(const std::function<void(Region&, ibv_pd*)>& what);
  std::size_t SomeLength(std::size_t most);
  // What is on demand and may be written has pages of its own.
  unsigned Permit(unsigned access) const {
    const bool on_demand = (access & IBV_ACCESS_ON_DEMAND) != 0;
    return one_mapping_ && on_demand ? access | unsigned{IBV_ACCESS_LOCAL_WRITE} : access;
  }
  Link& SomeLink() { return *random_.Of(links_); }
  [[noreturn]] void Wrong(const std::string& what) const;

  std::uint64_t seed_;
  bool one_mapping_;
  std::uint64_t step_ = 0;
  Random random_;
  std::vector<std::unique_ptr<Link>> links_;
};

#endif  // TESTS_GUEST_LAB_WORKER_H_
