// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Posting and polling: commands to the kernel, as long as its queues are not
// shared with user space. libibverbs sends them by ioctl(2); the same by write(2)
// costs half the instructions (docs/design-notes.md). The kernel takes a write
// only of who has opened the device, so others go the library's way, and so do
// lists and long scatter lists.
//
// Work requests are handed on as they are: the kernel takes the data of an inline
// send from the addresses of its scatter list while it is posted.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "ops.h"

namespace mrlab {
namespace {

constexpr std::size_t kSges = 4;
constexpr int kCompletions = 16;

// ib_uverbs_post_send and ib_uverbs_post_recv, less the requests that follow.
struct PostBody {
  std::uint64_t response;
  std::uint32_t qp_handle;
  std::uint32_t wr_count;
  std::uint32_t sge_count;
  std::uint32_t wqe_size;
};
static_assert(sizeof(PostBody) == sizeof(ib_uverbs_post_send));
static_assert(sizeof(PostBody) == sizeof(ib_uverbs_post_recv));

// With one request and its scatter list, as the kernel reads it.
template <typename Wr>
struct PostCommand {
  ib_uverbs_cmd_hdr header;
  PostBody post;
  Wr wr;
  ib_uverbs_sge sge[kSges];
};
using SendCommand = PostCommand<ib_uverbs_send_wr>;
using ReceiveCommand = PostCommand<ib_uverbs_recv_wr>;

struct PollCommand {
  ib_uverbs_cmd_hdr header;
  ib_uverbs_poll_cq poll;
};
// ib_uverbs_poll_cq_resp, whose completions are of no fixed number.
struct PollResponse {
  std::uint32_t count;
  std::uint32_t reserved;
  ib_uverbs_wc wc[kCompletions];
};

constexpr std::uint16_t Words(std::size_t bytes) {
  return static_cast<std::uint16_t>(bytes / sizeof(std::uint32_t));
}

template <typename Response>
std::uint64_t Address(const Response& response) {
  return reinterpret_cast<std::uintptr_t>(&response);
}

// 0 or an errno.
template <typename Command>
int Write(const ibv_context* context, std::uint32_t number, Command& command, std::size_t bytes,
          std::size_t response_bytes) {
  command.header = {
      .command = number, .in_words = Words(bytes), .out_words = Words(response_bytes)};
  return write(context->cmd_fd, &command, bytes) < 0 ? errno : 0;
}

template <typename Wr>
bool IsShort(const Wr* wr) {
  return wr != nullptr && wr->next == nullptr && wr->num_sge >= 0 &&
         static_cast<std::size_t>(wr->num_sge) <= kSges;
}

template <typename Response, typename Command, typename Wr>
int PostOne(ibv_qp* qp, std::uint32_t number, Command& command, const Wr& wr) {
  Response response;
  const auto sges = static_cast<std::uint32_t>(wr.num_sge);
  command.post = {.response = Address(response),
                  .qp_handle = qp->handle,
                  .wr_count = 1,
                  .sge_count = sges,
                  .wqe_size = sizeof(command.wr)};
  command.wr.wr_id = wr.wr_id;
  command.wr.num_sge = sges;
  std::transform(wr.sg_list, wr.sg_list + sges, command.sge, [](const ibv_sge& sge) {
    return ib_uverbs_sge{.addr = sge.addr, .length = sge.length, .lkey = sge.lkey};
  });
  const std::size_t unused = (kSges - sges) * sizeof(ib_uverbs_sge);
  return Write(qp->context, number, command, sizeof(command) - unused, sizeof(response));
}

void SetRemote(ib_uverbs_send_wr& to, const ibv_send_wr& from) {
  if (from.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || from.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    to.wr.atomic.remote_addr = from.wr.atomic.remote_addr;
    to.wr.atomic.compare_add = from.wr.atomic.compare_add;
    to.wr.atomic.swap = from.wr.atomic.swap;
    to.wr.atomic.rkey = from.wr.atomic.rkey;
  } else {
    to.wr.rdma.remote_addr = from.wr.rdma.remote_addr;
    to.wr.rdma.rkey = from.wr.rdma.rkey;
  }
}

// The kernel's flags are handed on as they are, and this one has another number
// there than in libibverbs.
constexpr unsigned kKernelWithInvalidate = 1U << 2;

void TranslateFlags(ibv_wc& wc) {
  if ((wc.wc_flags & kKernelWithInvalidate) != 0) {
    wc.wc_flags = (wc.wc_flags & ~kKernelWithInvalidate) | IBV_WC_WITH_INV;
  }
}

void Take(ibv_wc& to, const ib_uverbs_wc& from) {
  to.wr_id = from.wr_id;
  to.status = static_cast<ibv_wc_status>(from.status);
  to.opcode = static_cast<ibv_wc_opcode>(from.opcode);
  to.vendor_err = from.vendor_err;
  to.byte_len = from.byte_len;
  to.imm_data = from.ex.imm_data;  // or the invalidated key, in the same place
  to.qp_num = from.qp_num;
  to.src_qp = from.src_qp;
  to.wc_flags = from.wc_flags;
  to.pkey_index = from.pkey_index;
  to.slid = from.slid;
  to.sl = from.sl;
  to.dlid_path_bits = from.dlid_path_bits;
}

// At most kCompletions.
int PollSome(ibv_cq* cq, int num_entries, ibv_wc* wc) {
  PollResponse response;
  PollCommand command;
  command.poll.response = Address(response);
  command.poll.cq_handle = cq->handle;
  command.poll.ne = static_cast<std::uint32_t>(num_entries);
  const std::size_t bytes =
      sizeof(response) - (kCompletions - command.poll.ne) * sizeof(ib_uverbs_wc);
  const int error = Write(cq->context, IB_USER_VERBS_CMD_POLL_CQ, command, sizeof(command), bytes);
  if (error == EACCES) return ibv_cmd_poll_cq(cq, num_entries, wc);
  if (error != 0) {
    errno = error;
    return -1;
  }
  for (std::uint32_t i = 0; i < response.count; ++i) Take(wc[i], response.wc[i]);
  return static_cast<int>(response.count);
}

}  // namespace

int Send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  if (!IsShort(wr)) return ibv_cmd_post_send(qp, wr, bad);
  SendCommand command;
  command.wr.opcode = wr->opcode;
  command.wr.send_flags = wr->send_flags;
  command.wr.ex.imm_data = wr->imm_data;  // or the key to invalidate
  SetRemote(command.wr, *wr);
  const int error =
      PostOne<ib_uverbs_post_send_resp>(qp, IB_USER_VERBS_CMD_POST_SEND, command, *wr);
  if (error == EACCES) return ibv_cmd_post_send(qp, wr, bad);
  if (error != 0) *bad = wr;
  return error;
}

int Receive(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  if (!IsShort(wr)) return ibv_cmd_post_recv(qp, wr, bad);
  ReceiveCommand command;
  command.wr.reserved = 0;
  const int error =
      PostOne<ib_uverbs_post_recv_resp>(qp, IB_USER_VERBS_CMD_POST_RECV, command, *wr);
  if (error == EACCES) return ibv_cmd_post_recv(qp, wr, bad);
  if (error != 0) *bad = wr;
  return error;
}

// Fewer than asked for means that the CQ is empty: a program that has armed it waits then.
int Poll(ibv_cq* cq, int num_entries, ibv_wc* wc) {
  int polled = 0;
  while (polled < num_entries) {
    const int wanted = std::min(num_entries - polled, kCompletions);
    const int got = PollSome(cq, wanted, wc + polled);
    // What was polled before is the caller's; what went wrong will again.
    if (got < 0 && polled == 0) return got;
    if (got < 0) break;
    polled += got;
    if (got < wanted) break;
  }
  std::for_each(wc, wc + polled, TranslateFlags);
  return polled;
}

}  // namespace mrlab
