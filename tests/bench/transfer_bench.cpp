// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// One transfer after the other between two queue pairs of a device, each waited
// for by polling with yield. Prints one line, to be read by tests/bench/transfers.
//
//   transfer_bench --device NAME --op write|read|send [--size BYTES] [--count N]
//                  [--depth N]
//   --depth N  post so many before they are waited for
// Times are nanoseconds for one transfer; in a guest with icount, instructions.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "mrscope/units.h"
#include "options.h"
#include "pair.h"

namespace {

std::uint64_t Now() { return static_cast<std::uint64_t>(mrscope::MonotonicNow().count()); }

struct Round {
  std::uint64_t total = 0;
  std::uint64_t post = 0;
  std::uint64_t polls = 0;
};

class Transfers {
 public:
  Transfers(ibv_context* context, const std::string& op, std::uint32_t size, unsigned depth)
      : sends_(op == "send"),
        depth_(depth),
        pair_(context, Options(depth)),
        here_(MapMemory(size)),
        there_(MapMemory(size)),
        local_(::Register(pair_.requester.pd(), here_, size, kAllAccess)),
        remote_(::Register(pair_.responder.pd(), there_, size, kAllAccess)),
        sge_{Sge(*local_, 0, size)},
        into_{Sge(*remote_, 0, size)},
        wr_(Request(op == "read"   ? IBV_WR_RDMA_READ
                    : op == "send" ? IBV_WR_SEND
                                   : IBV_WR_RDMA_WRITE,
                    there_, remote_->rkey)) {
    std::memset(here_, 1, size);
    std::memset(there_, 2, size);
  }

  Round Do() {
    Round round;
    if (sends_)
      for (unsigned i = 0; i < depth_; ++i) pair_.responder.Receive(into_);
    const std::uint64_t begin = Now();
    for (unsigned i = 0; i < depth_; ++i)
      if (pair_.requester.Post(wr_, sge_) != 0) Die("cannot post");
    round.post = Now() - begin;
    Collect(pair_.requester, round);
    if (sends_) Collect(pair_.responder, round);
    round.total = Now() - begin;
    return round;
  }

 private:
  static PairOptions Options(unsigned depth) {
    PairOptions options;
    options.depth = depth;
    options.timeout = 14;
    options.retry_count = 7;
    options.rnr_retry = 7;
    return options;
  }

  void Collect(const Side& side, Round& round) const {
    for (unsigned done = 0; done < depth_;) {
      ibv_wc wc{};
      const int polled = ibv_poll_cq(side.cq(), 1, &wc);
      ++round.polls;
      if (polled < 0 || (polled == 1 && wc.status != IBV_WC_SUCCESS)) Die("a transfer failed");
      if (polled == 0) sched_yield();
      done += static_cast<unsigned>(polled);
    }
  }

  bool sends_;
  unsigned depth_;
  Pair pair_;
  char* here_;
  char* there_;
  VerbsMr local_;
  VerbsMr remote_;
  std::array<ibv_sge, 1> sge_;
  std::array<ibv_sge, 1> into_;
  ibv_send_wr wr_;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options({argv, static_cast<std::size_t>(argc)}, {{"--device", "mrlab0"},
                                                                 {"--op", "write"},
                                                                 {"--size", "64"},
                                                                 {"--count", "200"},
                                                                 {"--depth", "1"}});
  const auto context = mrscope::Context::Open(options.Text("--device"));
  if (!context) Die(context.error().message);
  const auto depth = static_cast<unsigned>(options.Number("--depth"));
  Transfers transfers(context->get(), options.Text("--op"),
                      static_cast<std::uint32_t>(options.Number("--size")), depth);
  for (int i = 0; i < 20; ++i) transfers.Do();
  std::vector<Round> rounds(options.Number("--count"));
  for (Round& round : rounds) round = transfers.Do();
  std::sort(rounds.begin(), rounds.end(),
            [](const Round& a, const Round& b) { return a.total < b.total; });
  const Round& best = rounds.front();
  const auto per = [depth](std::uint64_t value) {
    return static_cast<unsigned long long>(value / depth);
  };
  std::printf("min %llu p50 %llu p99 %llu max %llu post %llu polls %llu\n", per(best.total),
              per(rounds[rounds.size() / 2].total), per(rounds[rounds.size() * 99 / 100].total),
              per(rounds.back().total), per(best.post), per(best.polls));
  return 0;
}
