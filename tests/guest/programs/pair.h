// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Two queue pairs of one device that are connected to each other, in one
// process. What goes wrong while they are made ends the program.

#ifndef TESTS_GUEST_PAIR_H_
#define TESTS_GUEST_PAIR_H_

#include <infiniband/verbs.h>
#include <sched.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device.h"

inline constexpr unsigned kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

// Of IPv4, where the guests have one.
inline constexpr int kRoceGid = 1;

// What a queue pair is made with, where a test does not say otherwise.
struct PairOptions {
  ibv_qp_type type = IBV_QPT_RC;
  std::uint32_t depth = 16;
  std::uint32_t max_sge = 4;
  std::uint32_t max_inline = 256;
  unsigned qp_access = kAllAccess;
  std::uint8_t rnr_retry = 0;
  std::uint8_t retry_count = 1;
  std::uint8_t timeout = 8;  // about a millisecond
  std::uint8_t reads = 1;    // outstanding, both ways
};

using VerbsPd = std::unique_ptr<ibv_pd, decltype(&ibv_dealloc_pd)>;
using VerbsCq = std::unique_ptr<ibv_cq, decltype(&ibv_destroy_cq)>;
using VerbsQp = std::unique_ptr<ibv_qp, decltype(&ibv_destroy_qp)>;
using VerbsMr = std::unique_ptr<ibv_mr, decltype(&ibv_dereg_mr)>;

inline VerbsPd AllocatePd(ibv_context* context) {
  VerbsPd pd(ibv_alloc_pd(context), ibv_dealloc_pd);
  if (!pd) Die("no PD");
  return pd;
}

inline VerbsMr Register(ibv_pd* pd, void* memory, std::size_t length, unsigned access) {
  VerbsMr mr(ibv_reg_mr(pd, memory, length, static_cast<int>(access)), ibv_dereg_mr);
  if (!mr) Die(std::string("no MR: ") + std::strerror(errno));
  return mr;
}

inline ibv_sge Sge(const ibv_mr& mr, std::size_t offset, std::uint32_t length) {
  return {reinterpret_cast<std::uintptr_t>(mr.addr) + offset, length, mr.lkey};
}

// Completion statuses of requests that never complete, or were not taken.
inline constexpr int kNone = -1;
inline constexpr int kNotPosted = -2;

inline std::string StatusText(int status) {
  if (status == kNone) return "none";
  if (status == kNotPosted) return "not posted";
  return ibv_wc_status_str(static_cast<ibv_wc_status>(status));
}

class Side {
 public:
  Side(ibv_context* context, const PairOptions& options)
      : options_(options), pd_(AllocatePd(context)), cq_(CreateCq(context)), qp_(CreateQp()) {}

  ibv_pd* pd() const { return pd_.get(); }
  ibv_cq* cq() const { return cq_.get(); }
  ibv_qp* qp() const { return qp_.get(); }

  // To the ready-to-send state, the peer being its other end.
  void Connect(std::uint32_t peer) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = options_.qp_access;
    Modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer;
    Address(attr.ah_attr);
    attr.max_dest_rd_atomic = options_.reads;
    attr.min_rnr_timer = 1;
    const bool reliable = options_.type == IBV_QPT_RC;
    Modify(attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                     (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = options_.timeout;
    attr.retry_cnt = options_.retry_count;
    attr.rnr_retry = options_.rnr_retry;
    attr.max_rd_atomic = options_.reads;
    Modify(attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
                     (reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                     IBV_QP_MAX_QP_RD_ATOMIC
                               : 0));
  }

  void SetState(ibv_qp_state state) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    Modify(attr, IBV_QP_STATE);
  }

  // Another queue pair in place of this one, not connected.
  void ReplaceQp() {
    qp_.reset();
    qp_ = CreateQp();
  }

  ibv_qp_state State() const {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    if (ibv_query_qp(qp(), &attr, IBV_QP_STATE, &init) != 0) Die("no state of a QP");
    return attr.qp_state;
  }

  int Receive(std::span<ibv_sge> sges, std::uint64_t id = 1) {
    ibv_recv_wr wr{};
    wr.wr_id = id;
    wr.sg_list = sges.data();
    wr.num_sge = static_cast<int>(sges.size());
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(qp(), &wr, &bad);
  }

  int Post(ibv_send_wr wr, std::span<ibv_sge> sges) {
    wr.sg_list = sges.data();
    wr.num_sge = static_cast<int>(sges.size());
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp(), &wr, &bad);
  }

  // The next completion, waited for; kNone in its status where none comes.
  std::pair<int, ibv_wc> Wait(int milliseconds = 2000) {
    ibv_wc wc{};
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    for (;;) {
      const int polled = ibv_poll_cq(cq(), 1, &wc);
      if (polled < 0) Die("cannot poll");
      if (polled == 1) return {wc.status, wc};
      if (std::chrono::steady_clock::now() > until) return {kNone, wc};
      sched_yield();
    }
  }

  // Post and wait: the status.
  int Do(const ibv_send_wr& wr, std::span<ibv_sge> sges) {
    return Post(wr, sges) == 0 ? Wait().first : kNotPosted;
  }

 private:
  // Of the device itself: by its LID, or by its GID where it has none (RoCE).
  void Address(ibv_ah_attr& to) const {
    ibv_context* context = qp()->context;
    ibv_port_attr port{};
    if (ibv_query_port(context, 1, &port) != 0) Die("no port");
    to.port_num = 1;
    to.dlid = port.lid;
    if (port.link_layer != IBV_LINK_LAYER_ETHERNET) return;
    to.is_global = 1;
    to.grh.sgid_index = kRoceGid;
    to.grh.hop_limit = 1;
    if (ibv_query_gid(context, 1, kRoceGid, &to.grh.dgid) != 0) Die("no GID");
  }
  VerbsCq CreateCq(ibv_context* context) const {
    const auto entries = static_cast<int>(2 * options_.depth);
    VerbsCq cq(ibv_create_cq(context, entries, nullptr, nullptr, 0), ibv_destroy_cq);
    if (!cq) Die("no CQ");
    return cq;
  }
  VerbsQp CreateQp() const {
    ibv_qp_init_attr init{};
    init.send_cq = cq();
    init.recv_cq = cq();
    init.qp_type = options_.type;
    init.cap.max_send_wr = options_.depth;
    init.cap.max_recv_wr = options_.depth;
    init.cap.max_send_sge = options_.max_sge;
    init.cap.max_recv_sge = options_.max_sge;
    init.cap.max_inline_data = options_.max_inline;
    VerbsQp qp(ibv_create_qp(pd(), &init), ibv_destroy_qp);
    if (!qp) Die(std::string("no QP: ") + std::strerror(errno));
    return qp;
  }
  void Modify(ibv_qp_attr& attr, int mask) {
    const int error = ibv_modify_qp(qp(), &attr, mask);
    if (error != 0) Die(std::string("cannot modify a QP: ") + std::strerror(error));
  }

  PairOptions options_;
  VerbsPd pd_;
  VerbsCq cq_;
  VerbsQp qp_;
};

class Pair {
 public:
  explicit Pair(ibv_context* context, const PairOptions& options = {})
      : requester(context, options), responder(context, options) {
    requester.Connect(responder.qp()->qp_num);
    responder.Connect(requester.qp()->qp_num);
  }

  Side requester;
  Side responder;
};

inline ibv_send_wr Request(ibv_wr_opcode opcode, const void* remote = nullptr,
                           std::uint32_t rkey = 0) {
  ibv_send_wr wr{};
  wr.wr_id = 2;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr.wr.atomic.remote_addr = reinterpret_cast<std::uintptr_t>(remote);
    wr.wr.atomic.rkey = rkey;
  } else {
    wr.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(remote);
    wr.wr.rdma.rkey = rkey;
  }
  return wr;
}

#endif  // TESTS_GUEST_PAIR_H_
