// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The table of operations, and a check that libibverbs reads it as it is meant.

#include "ops.h"

#include <cerrno>
#include <cstdio>

namespace mrlab {
namespace {

// A library with more operations under the same number finds null in them.
struct Table {
  verbs_context_ops ops;
  Unused* more[32];
};

constexpr Table kTable = {
    .ops =
        {
            .advise_mr = ibv_cmd_advise_mr,
            .alloc_pd = MakePd,
            .create_cq = MakeCq,
            .create_cq_ex = MakeCqEx,
            .create_qp = MakeQp,
            .create_qp_ex = MakeQpEx,
            .dealloc_pd = FreePd,
            .dereg_mr = Deregister,
            .destroy_cq = FreeCq,
            .destroy_qp = FreeQp,
            .free_context = CloseContext,
            .modify_qp = Modify,
            .poll_cq = Poll,
            .post_recv = Receive,
            .post_send = Send,
            .query_device_ex = QueryDeviceAttr,
            .query_port = QueryPortAttr,
            .query_qp = QueryQpAttr,
            .reg_dmabuf_mr = RegisterDmabuf,
            .reg_mr = Register,
#if MRLAB_PABI >= 65
            .reg_mr_ex = RegisterEx,
#endif
            .req_notify_cq = ibv_cmd_req_notify_cq,
            .rereg_mr = Reregister,
            .resize_cq = Resize,
        },
    .more = {},
};

// Some operations are copied to where verbs.h declares them: from the first in
// the table to one near its end.
bool ArePlaced(const verbs_context& context) {
  const verbs_context_ops& ops = kTable.ops;
  const ibv_context_ops& placed = context.context.ops;
  return context.advise_mr == ops.advise_mr && context.create_qp_ex == ops.create_qp_ex &&
         context.query_device_ex == ops.query_device_ex && placed.poll_cq == ops.poll_cq &&
         placed.post_recv == ops.post_recv && placed.post_send == ops.post_send &&
         placed.req_notify_cq == ops.req_notify_cq;
}

}  // namespace

int SetOps(verbs_context* context) {
  verbs_set_ops(context, &kTable.ops);
  if (ArePlaced(*context)) return 0;
  std::fputs(
      "mrlab: this libibverbs has another table of operations than the provider was built for\n",
      stderr);
  return EPROTO;
}

}  // namespace mrlab
