// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Queue pairs. What is posted to them is in data_path.cpp.

#include "memory.h"
#include "ops.h"

namespace mrlab {

ibv_qp* MakeQp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  auto qp = Allocate<verbs_qp>();
  if (!qp) return nullptr;
  UverbsCommand<ib_uverbs_create_qp> command{};
  ib_uverbs_create_qp_resp response{};
  if (const int error = ibv_cmd_create_qp(pd, &qp->qp, attr, &command, sizeof(command), &response,
                                          sizeof(response))) {
    return Fail(error);
  }
  return &qp.release()->qp;
}

// As far as it says no more than ibv_create_qp() does.
ibv_qp* MakeQpEx(ibv_context* /*context*/, ibv_qp_init_attr_ex* attr) {
  const bool plain_flags =
      (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) == 0 || attr->create_flags == 0;
  if ((attr->comp_mask & ~std::uint32_t{IBV_QP_INIT_ATTR_CREATE_FLAGS}) != IBV_QP_INIT_ATTR_PD ||
      !plain_flags) {
    return Fail(EOPNOTSUPP);
  }
  ibv_qp_init_attr plain = {
      .qp_context = attr->qp_context,
      .send_cq = attr->send_cq,
      .recv_cq = attr->recv_cq,
      .srq = attr->srq,
      .cap = attr->cap,
      .qp_type = attr->qp_type,
      .sq_sig_all = attr->sq_sig_all,
  };
  ibv_qp* qp = MakeQp(attr->pd, &plain);
  if (qp != nullptr) attr->cap = plain.cap;
  return qp;
}

int Modify(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  UverbsCommand<ib_uverbs_modify_qp> command{};
  return ibv_cmd_modify_qp(qp, attr, mask, &command, sizeof(command));
}

int QueryQpAttr(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init_attr) {
  UverbsCommand<ib_uverbs_query_qp> command{};
  return ibv_cmd_query_qp(qp, attr, mask, init_attr, &command, sizeof(command));
}

int FreeQp(ibv_qp* qp) {
  if (const int error = ibv_cmd_destroy_qp(qp)) return error;
  std::free(qp);
  return 0;
}

}  // namespace mrlab
