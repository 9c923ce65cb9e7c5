// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What mrlab's provider answers beside moving data: a line "QUESTION ANSWER" for
// each, an errno as its name. Argument: the device.

#include <infiniband/verbs.h>
#include <mrlabdv.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

template <auto Destroy>
struct Destroyer {
  template <typename T>
  void operator()(T* object) const {
    Destroy(object);
  }
};
using Context = std::unique_ptr<ibv_context, Destroyer<ibv_close_device>>;
using Pd = std::unique_ptr<ibv_pd, Destroyer<ibv_dealloc_pd>>;
using Mr = std::unique_ptr<ibv_mr, Destroyer<ibv_dereg_mr>>;
using Cq = std::unique_ptr<ibv_cq, Destroyer<ibv_destroy_cq>>;
using Qp = std::unique_ptr<ibv_qp, Destroyer<ibv_destroy_qp>>;

constexpr int kDepth = 16;
constexpr std::size_t kLength = std::size_t{1} << 20;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

void Answer(const char* question, const std::string& answer) {
  std::printf("%s %s\n", question, answer.c_str());
}

std::string Name(int error) { return error == 0 ? "0" : strerrorname_np(error); }

// Of a call that returns null and sets errno.
template <typename T>
std::string Outcome(const T& object) {
  return object ? "0" : Name(errno);
}

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::exit(2);
}

Context Open(const std::string& name) {
  int count = 0;
  ibv_device** devices = ibv_get_device_list(&count);
  if (devices == nullptr) Die("ibv_get_device_list");
  Context context;
  for (int i = 0; i < count; ++i) {
    if (ibv_get_device_name(devices[i]) == name) context.reset(ibv_open_device(devices[i]));
  }
  ibv_free_device_list(devices);
  if (!context) Die(name.c_str());
  return context;
}

// ---- stages ----

void AskStages(ibv_pd* pd) {
  std::vector<char> buffer(kLength);
  const auto start = std::chrono::steady_clock::now();
  Mr mr(ibv_reg_mr(pd, buffer.data(), kLength, kAccess));
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
  if (!mr) Die("ibv_reg_mr");

  mrlab_reg_mr_resp stages{};
  const int error = mrlabdv_reg_stages(mr.get(), &stages);
  Answer("stages", Name(error));
  if (error != 0) return;
  Answer("stages.size", stages.size == sizeof(stages) ? "same" : std::to_string(stages.size));
  std::uint64_t sum = 0;
  for (const std::uint64_t ns : stages.stage_ns) sum += ns == MRLAB_NS_UNKNOWN ? 0 : ns;
  Answer("stages.sum",
         sum > 0 && sum <= static_cast<std::uint64_t>(took.count()) ? "within" : "not within");
  Answer("stages.table_covers",
         (stages.table_entries << stages.page_shift) >= kLength ? "yes" : "no");

  const std::uint32_t rkey = mr->rkey;
  Answer("rereg.access", Name(ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr,
                                           0, IBV_ACCESS_LOCAL_WRITE)));
  Answer("rereg.access.rkey", mr->rkey == rkey ? "same" : "another");
  Answer("rereg.translation", Name(ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr,
                                                buffer.data(), kLength / 2, 0)));
  mrlab_reg_mr_resp again{};
  Answer("rereg.stages", Name(mrlabdv_reg_stages(mr.get(), &again)));
  Answer("rereg.stages.sg_entries", again.sg_entries <= stages.sg_entries ? "fewer" : "more");
}

// ---- queue pairs ----

ibv_qp_init_attr_ex QpAttr(ibv_pd* pd, ibv_cq* cq) {
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = cq;
  attr.recv_cq = cq;
  attr.cap.max_send_wr = kDepth;
  attr.cap.max_recv_wr = kDepth;
  attr.cap.max_send_sge = 1;
  attr.cap.max_recv_sge = 1;
  attr.cap.max_inline_data = 64;
  attr.qp_type = IBV_QPT_RC;
  attr.sq_sig_all = 1;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = pd;
  return attr;
}

void AskQpEx(ibv_context* context, ibv_pd* pd, ibv_cq* cq) {
  ibv_qp_init_attr_ex attr = QpAttr(pd, cq);
  Qp qp(ibv_create_qp_ex(context, &attr));
  Answer("qp_ex", Outcome(qp));
  Answer("qp_ex.inline", attr.cap.max_inline_data >= 64 ? "as asked" : "less");
  Answer("qp_ex.extended", qp && ibv_qp_to_qp_ex(qp.get()) != nullptr ? "yes" : "no");

  attr = QpAttr(pd, cq);
  attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
  Answer("qp_ex.send_ops", Outcome(Qp(ibv_create_qp_ex(context, &attr))));
}

// An RC QP that is connected to itself.
Qp Loop(ibv_context* context, ibv_pd* pd, ibv_cq* cq) {
  ibv_qp_init_attr_ex init = QpAttr(pd, cq);
  Qp qp(ibv_create_qp_ex(context, &init));
  if (!qp) Die("ibv_create_qp_ex");
  ibv_port_attr port{};
  if (ibv_query_port(context, 1, &port) != 0) Die("ibv_query_port");

  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = kAccess;
  if (ibv_modify_qp(qp.get(), &attr,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0) {
    Die("to INIT");
  }
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = qp->qp_num;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.dlid = port.lid;
  attr.ah_attr.port_num = 1;
  if (ibv_modify_qp(qp.get(), &attr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0) {
    Die("to RTR");
  }
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  if (ibv_modify_qp(qp.get(), &attr,
                    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                        IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) != 0) {
    Die("to RTS");
  }
  return qp;
}

// A message of its own with its number as immediate data, sent inline.
void Send(ibv_qp* qp, const Mr& mr, std::uint32_t number) {
  ibv_sge into{reinterpret_cast<std::uintptr_t>(mr->addr), 64, mr->lkey};
  ibv_recv_wr recv{};
  recv.wr_id = 100 + number;
  recv.sg_list = &into;
  recv.num_sge = 1;
  ibv_recv_wr* bad_recv = nullptr;
  if (ibv_post_recv(qp, &recv, &bad_recv) != 0) Die("ibv_post_recv");

  // Not registered, and changed as soon as it is posted.
  std::array<char, 16> message{};
  message.fill(static_cast<char>('a' + number));
  ibv_sge from{reinterpret_cast<std::uintptr_t>(message.data()), message.size(), 0};
  ibv_send_wr send{};
  send.wr_id = number;
  send.sg_list = &from;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND_WITH_IMM;
  send.send_flags = IBV_SEND_INLINE;
  send.imm_data = number;
  ibv_send_wr* bad_send = nullptr;
  if (ibv_post_send(qp, &send, &bad_send) != 0) Die("ibv_post_send");
  message.fill('!');
}

// Waits until message NUMBER is there: those before it have completed then.
void Await(const std::vector<char>& buffer, std::uint32_t number) {
  const volatile char* first = buffer.data();
  while (*first != static_cast<char>('a' + number)) continue;
}

// ---- completion queues ----

std::string CqEx(ibv_context* context, std::uint64_t wc_flags, std::uint32_t flags) {
  ibv_cq_init_attr_ex attr{};
  attr.cqe = kDepth;
  attr.wc_flags = wc_flags;
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attr.flags = flags;
  ibv_cq_ex* cq = ibv_create_cq_ex(context, &attr);
  std::string outcome = Outcome(cq);
  if (cq != nullptr) ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
  return outcome;
}

// Waits until a completion is there, and begins to read it.
void StartPoll(ibv_cq_ex* cq) {
  ibv_poll_cq_attr attr{};
  for (;;) {
    const int error = ibv_start_poll(cq, &attr);
    if (error == 0) return;
    if (error != ENOENT) Die("ibv_start_poll");
  }
}

void AskCqEx(ibv_context* context, ibv_pd* pd) {
  Answer("cq_ex.standard", CqEx(context, IBV_WC_STANDARD_FLAGS, 0));
  Answer("cq_ex.single_threaded",
         CqEx(context, IBV_WC_STANDARD_FLAGS, IBV_CREATE_CQ_ATTR_SINGLE_THREADED));
  Answer("cq_ex.timestamp", CqEx(context, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0));
  Answer("cq_ex.overrun", CqEx(context, 0, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN));

  ibv_cq_init_attr_ex attr{};
  attr.cqe = kDepth;
  attr.wc_flags = IBV_WC_STANDARD_FLAGS;
  ibv_cq_ex* ex = ibv_create_cq_ex(context, &attr);
  if (ex == nullptr) Die("ibv_create_cq_ex");
  Cq cq(ibv_cq_ex_to_cq(ex));
  std::vector<char> buffer(64);
  Mr mr(ibv_reg_mr(pd, buffer.data(), buffer.size(), IBV_ACCESS_LOCAL_WRITE));
  Qp qp = Loop(context, pd, cq.get());

  ibv_poll_cq_attr none{};
  Answer("cq_ex.empty", Name(ibv_start_poll(ex, &none)));
  Send(qp.get(), mr, 1);
  Send(qp.get(), mr, 2);
  // Of each message one completion on either side.
  std::string sent;
  std::string received;
  bool whole = true;
  for (int i = 0; i < 4; ++i) {
    StartPoll(ex);
    whole = whole && ex->status == IBV_WC_SUCCESS && ibv_wc_read_qp_num(ex) == qp->qp_num;
    if ((ibv_wc_read_opcode(ex) & IBV_WC_RECV) != 0) {
      whole = whole && ibv_wc_read_byte_len(ex) == 16 &&
              (ibv_wc_read_wc_flags(ex) & IBV_WC_WITH_IMM) != 0 &&
              ex->wr_id == 100 + ibv_wc_read_imm_data(ex);
      received += " " + std::to_string(ibv_wc_read_imm_data(ex));
    } else {
      sent += " " + std::to_string(ex->wr_id);
    }
    ibv_end_poll(ex);
  }
  Answer("cq_ex.sent", sent.substr(1));
  Answer("cq_ex.received", received.substr(1));
  Answer("cq_ex.whole", whole ? "yes" : "no");
  Answer("inline", std::string(buffer.data(), 16));
}

// One call returns all that there is.
void AskPoll(ibv_context* context, ibv_pd* pd) {
  Cq cq(ibv_create_cq(context, 2 * kDepth, nullptr, nullptr, 0));
  std::vector<char> buffer(64);
  Mr mr(ibv_reg_mr(pd, buffer.data(), buffer.size(), IBV_ACCESS_LOCAL_WRITE));
  Qp qp = Loop(context, pd, cq.get());
  for (std::uint32_t i = 1; i <= kDepth; ++i) Send(qp.get(), mr, i);
  Await(buffer, kDepth);
  std::array<ibv_wc, std::size_t{2} * kDepth> done{};
  const int polled = ibv_poll_cq(cq.get(), done.size(), done.data());
  Answer("poll", polled >= 2 * (kDepth - 1) ? "all" : std::to_string(polled));
  Answer("poll.none", std::to_string(ibv_poll_cq(cq.get(), 0, nullptr)));
}

// Messages whose completions nobody has polled yet.
void AskResize(ibv_context* context, ibv_pd* pd) {
  Cq cq(ibv_create_cq(context, kDepth, nullptr, nullptr, 0));
  std::vector<char> buffer(64);
  Mr mr(ibv_reg_mr(pd, buffer.data(), buffer.size(), IBV_ACCESS_LOCAL_WRITE));
  Qp qp = Loop(context, pd, cq.get());
  std::vector<ibv_wc> done;
  const auto poll = [&](std::size_t count) {
    while (done.size() < count) {
      ibv_wc wc{};
      const int polled = ibv_poll_cq(cq.get(), 1, &wc);
      if (polled < 0) Die("ibv_poll_cq");
      if (polled > 0) done.push_back(wc);
    }
  };
  Send(qp.get(), mr, 1);
  poll(2);
  done.clear();
  Send(qp.get(), mr, 2);
  Send(qp.get(), mr, 3);
  Await(buffer, 3);
  Answer("resize.less_than_held", Name(ibv_resize_cq(cq.get(), 1)));
  Answer("resize.more", Name(ibv_resize_cq(cq.get(), 4 * kDepth)));
  Answer("resize.cqe", cq->cqe >= 4 * kDepth ? "as asked" : "less");
  poll(4);
  std::string received;
  for (const ibv_wc& wc : done) {
    if ((wc.opcode & IBV_WC_RECV) != 0) received += " " + std::to_string(wc.imm_data);
  }
  Answer("resize.received", received.substr(1));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: mrlab_provider_answers DEVICE\n");
    return 2;
  }
  const Context context = Open(argv[1]);
  const Pd pd(ibv_alloc_pd(context.get()));
  const Cq cq(ibv_create_cq(context.get(), kDepth, nullptr, nullptr, 0));
  if (!pd || !cq) Die("a PD or a CQ");
  AskStages(pd.get());
  AskQpEx(context.get(), pd.get(), cq.get());
  AskCqEx(context.get(), pd.get());
  AskPoll(context.get(), pd.get());
  AskResize(context.get(), pd.get());
}
