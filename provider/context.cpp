// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The context, what is asked of it, and protection domains.

#include <rdma/ib_user_ioctl_verbs.h>

#include <cstdio>

#include "memory.h"
#include "ops.h"

namespace mrlab {
namespace {

struct Uninit {
  void operator()(verbs_context* context) const {
    verbs_uninit_context(context);
    std::free(context);
  }
};
using OwnedContext = std::unique_ptr<verbs_context, Uninit>;

}  // namespace

verbs_context* OpenContext(ibv_device* device, int cmd_fd, void* /*private_data*/) {
  // The context is at the beginning of what is allocated.
  OwnedContext context(static_cast<verbs_context*>(_verbs_init_and_alloc_context(
      device, cmd_fd, sizeof(verbs_context), nullptr, RDMA_DRIVER_UNKNOWN)));
  if (!context) return nullptr;

  UverbsCommand<ib_uverbs_get_context> command{};
  ib_uverbs_get_context_resp response{};
  if (const int error = GetContext(context.get(), &command, &response)) return Fail(error);
  if (const int error = SetOps(context.get())) return Fail(error);
  return context.release();
}

void CloseContext(ibv_context* context) { Uninit{}(verbs_get_ctx(context)); }

int QueryDeviceAttr(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t attr_size) {
  ib_uverbs_ex_query_device_resp response{};
  std::size_t size = sizeof(response);
  if (const int error =
          ibv_cmd_query_device_any(context, input, attr, attr_size, &response, &size)) {
    return error;
  }
  const auto part = [&](int shift) {
    return static_cast<unsigned>(response.base.fw_ver >> shift & 0xffff);
  };
  std::snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver), "%u.%u.%u", part(32),
                part(16), part(0));
  return 0;
}

int QueryPortAttr(ibv_context* context, std::uint8_t port, ibv_port_attr* attr) {
  UverbsCommand<ib_uverbs_query_port> command{};
  return ibv_cmd_query_port(context, port, attr, &command, sizeof(command));
}

ibv_pd* MakePd(ibv_context* context) {
  auto pd = Allocate<ibv_pd>();
  if (!pd) return nullptr;
  UverbsCommand<ib_uverbs_alloc_pd> command{};
  ib_uverbs_alloc_pd_resp response{};
  if (const int error = ibv_cmd_alloc_pd(context, pd.get(), &command, sizeof(command), &response,
                                         sizeof(response))) {
    return Fail(error);
  }
  return pd.release();
}

int FreePd(ibv_pd* pd) {
  if (const int error = ibv_cmd_dealloc_pd(pd)) return error;
  std::free(pd);
  return 0;
}

}  // namespace mrlab
