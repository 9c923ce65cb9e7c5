// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Completion queues. Completions are the kernel's; the extended interface, which
// reads them field by field, is put on top of polling one at a time.

#include <pthread.h>

#include "memory.h"
#include "ops.h"

namespace mrlab {
namespace {

struct Cq {
  verbs_cq verbs;
  // From start_poll to end_poll it is held, unless one thread alone polls.
  pthread_mutex_t lock;
  bool single_threaded;
  ibv_wc wc;  // that is being read
};

Cq* From(ibv_cq* cq) { return reinterpret_cast<Cq*>(cq); }
Cq* From(ibv_cq_ex* cq) { return reinterpret_cast<Cq*>(cq); }

// ---- the extended interface ----

// 0, ENOENT where there is no completion, or what went wrong.
int Next(Cq* cq) {
  const int polled = Poll(&cq->verbs.cq, 1, &cq->wc);
  if (polled < 0) return errno;
  if (polled == 0) return ENOENT;
  cq->verbs.cq_ex.status = cq->wc.status;
  cq->verbs.cq_ex.wr_id = cq->wc.wr_id;
  return 0;
}

void EndPoll(ibv_cq_ex* ex) {
  if (!From(ex)->single_threaded) pthread_mutex_unlock(&From(ex)->lock);
}

int StartPoll(ibv_cq_ex* ex, ibv_poll_cq_attr* attr) {
  if (attr->comp_mask != 0) return EINVAL;
  if (!From(ex)->single_threaded) pthread_mutex_lock(&From(ex)->lock);
  const int error = Next(From(ex));
  // Without a completion no end_poll follows.
  if (error != 0) EndPoll(ex);
  return error;
}

int NextPoll(ibv_cq_ex* ex) { return Next(From(ex)); }

ibv_wc_opcode ReadOpcode(ibv_cq_ex* ex) { return From(ex)->wc.opcode; }
std::uint32_t ReadVendorErr(ibv_cq_ex* ex) { return From(ex)->wc.vendor_err; }
std::uint32_t ReadByteLen(ibv_cq_ex* ex) { return From(ex)->wc.byte_len; }
__be32 ReadImmData(ibv_cq_ex* ex) { return From(ex)->wc.imm_data; }
std::uint32_t ReadQpNum(ibv_cq_ex* ex) { return From(ex)->wc.qp_num; }
std::uint32_t ReadSrcQp(ibv_cq_ex* ex) { return From(ex)->wc.src_qp; }
unsigned ReadWcFlags(ibv_cq_ex* ex) { return From(ex)->wc.wc_flags; }
std::uint32_t ReadSlid(ibv_cq_ex* ex) { return From(ex)->wc.slid; }
std::uint8_t ReadSl(ibv_cq_ex* ex) { return From(ex)->wc.sl; }
std::uint8_t ReadDlidPathBits(ibv_cq_ex* ex) { return From(ex)->wc.dlid_path_bits; }

void SetReaders(ibv_cq_ex* ex) {
  ex->start_poll = StartPoll;
  ex->next_poll = NextPoll;
  ex->end_poll = EndPoll;
  ex->read_opcode = ReadOpcode;
  ex->read_vendor_err = ReadVendorErr;
  ex->read_byte_len = ReadByteLen;
  ex->read_imm_data = ReadImmData;
  ex->read_qp_num = ReadQpNum;
  ex->read_src_qp = ReadSrcQp;
  ex->read_wc_flags = ReadWcFlags;
  ex->read_slid = ReadSlid;
  ex->read_sl = ReadSl;
  ex->read_dlid_path_bits = ReadDlidPathBits;
}

// ---- creation ----

Owned<Cq> Create(ibv_context* context, int cqe, ibv_comp_channel* channel, int comp_vector) {
  auto cq = Allocate<Cq>();
  if (!cq) return nullptr;
  UverbsCommand<ib_uverbs_create_cq> command{};
  ib_uverbs_create_cq_resp response{};
  if (const int error = ibv_cmd_create_cq(context, cqe, channel, comp_vector, &cq->verbs.cq,
                                          &command, sizeof(command), &response, sizeof(response))) {
    return Fail(error);
  }
  pthread_mutex_init(&cq->lock, nullptr);
  return cq;
}

}  // namespace

ibv_cq* MakeCq(ibv_context* context, int cqe, ibv_comp_channel* channel, int comp_vector) {
  auto cq = Create(context, cqe, channel, comp_vector);
  return cq ? &cq.release()->verbs.cq : nullptr;
}

// Timestamps and what else the kernel's completions do not have are refused, as
// is a CQ that may be overrun.
ibv_cq_ex* MakeCqEx(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  const std::uint32_t flags =
      (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ? attr->flags : 0;
  if ((attr->wc_flags & ~std::uint64_t{IBV_WC_STANDARD_FLAGS}) != 0 ||
      (attr->comp_mask & ~std::uint32_t{IBV_CQ_INIT_ATTR_MASK_FLAGS}) != 0 ||
      (flags & ~std::uint32_t{IBV_CREATE_CQ_ATTR_SINGLE_THREADED}) != 0) {
    return Fail(EOPNOTSUPP);
  }
  auto cq = Create(context, static_cast<int>(attr->cqe), attr->channel,
                   static_cast<int>(attr->comp_vector));
  if (!cq) return nullptr;
  cq->single_threaded = flags != 0;
  SetReaders(&cq->verbs.cq_ex);
  return &cq.release()->verbs.cq_ex;
}

// ---- the rest ----

int Resize(ibv_cq* cq, int cqe) {
  UverbsCommand<ib_uverbs_resize_cq> command{};
  ib_uverbs_resize_cq_resp response{};
  return ibv_cmd_resize_cq(cq, cqe, &command, sizeof(command), &response, sizeof(response));
}

int FreeCq(ibv_cq* cq) {
  if (const int error = ibv_cmd_destroy_cq(cq)) return error;
  pthread_mutex_destroy(&From(cq)->lock);
  std::free(From(cq));
  return 0;
}

}  // namespace mrlab
