// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What is particular to private interface 34: rdma-core 44 to 56. For verbs_abi.h alone.

#ifndef MRLAB_PROVIDER_ABI_PABI_34_H_
#define MRLAB_PROVIDER_ABI_PABI_34_H_

// In the order of libibverbs, which is that of the alphabet.
struct verbs_context_ops {
  AdviseMr* advise_mr;
  Unused* alloc_dm = nullptr;
  Unused* alloc_mw = nullptr;
  Unused* alloc_null_mr = nullptr;
  Unused* alloc_parent_domain = nullptr;
  AllocPd* alloc_pd;
  Unused* alloc_td = nullptr;
  Unused* async_event = nullptr;
  Unused* attach_counters_point_flow = nullptr;
  Unused* attach_mcast = nullptr;
  Unused* bind_mw = nullptr;
  Unused* close_xrcd = nullptr;
  Unused* cq_event = nullptr;
  Unused* create_ah = nullptr;
  Unused* create_counters = nullptr;
  CreateCq* create_cq;
  CreateCqEx* create_cq_ex;
  Unused* create_flow = nullptr;
  Unused* create_flow_action_esp = nullptr;
  CreateQp* create_qp;
  CreateQpEx* create_qp_ex;
  Unused* create_rwq_ind_table = nullptr;
  Unused* create_srq = nullptr;
  Unused* create_srq_ex = nullptr;
  Unused* create_wq = nullptr;
  Unused* dealloc_mw = nullptr;
  DeallocPd* dealloc_pd;
  Unused* dealloc_td = nullptr;
  DeregMr* dereg_mr;
  Unused* destroy_ah = nullptr;
  Unused* destroy_counters = nullptr;
  DestroyCq* destroy_cq;
  Unused* destroy_flow = nullptr;
  Unused* destroy_flow_action = nullptr;
  DestroyQp* destroy_qp;
  Unused* destroy_rwq_ind_table = nullptr;
  Unused* destroy_srq = nullptr;
  Unused* destroy_wq = nullptr;
  Unused* detach_mcast = nullptr;
  FreeContext* free_context;
  Unused* free_dm = nullptr;
  Unused* get_srq_num = nullptr;
  Unused* import_dm = nullptr;
  Unused* import_mr = nullptr;
  Unused* import_pd = nullptr;
  Unused* modify_cq = nullptr;
  Unused* modify_flow_action_esp = nullptr;
  ModifyQp* modify_qp;
  Unused* modify_qp_rate_limit = nullptr;
  Unused* modify_srq = nullptr;
  Unused* modify_wq = nullptr;
  Unused* open_qp = nullptr;
  Unused* open_xrcd = nullptr;
  PollCq* poll_cq;
  PostRecv* post_recv;
  PostSend* post_send;
  Unused* post_srq_ops = nullptr;
  Unused* post_srq_recv = nullptr;
  QueryDevice* query_device_ex;
  Unused* query_ece = nullptr;
  QueryPort* query_port;
  QueryQp* query_qp;
  Unused* query_qp_data_in_order = nullptr;
  Unused* query_rt_values = nullptr;
  Unused* query_srq = nullptr;
  Unused* read_counters = nullptr;
  Unused* reg_dm_mr = nullptr;
  RegDmabufMr* reg_dmabuf_mr;
  RegMr* reg_mr;
  ReqNotifyCq* req_notify_cq;
  ReregMr* rereg_mr;
  ResizeCq* resize_cq;
  Unused* set_ece = nullptr;
  Unused* unimport_dm = nullptr;
  Unused* unimport_mr = nullptr;
  Unused* unimport_pd = nullptr;
};
inline constexpr std::size_t kContextOps = 76;

extern "C" {
void verbs_register_driver_34(const verbs_device_ops* ops);
int ibv_cmd_get_context(verbs_context* context, UverbsCommand<ib_uverbs_get_context>* command,
                        std::size_t command_size, ib_uverbs_get_context_resp* response,
                        std::size_t response_size);
}

inline void RegisterDriver(const verbs_device_ops* ops) { verbs_register_driver_34(ops); }
inline int GetContext(verbs_context* context, UverbsCommand<ib_uverbs_get_context>* command,
                      ib_uverbs_get_context_resp* response) {
  return ibv_cmd_get_context(context, command, sizeof(*command), response, sizeof(*response));
}

#endif  // MRLAB_PROVIDER_ABI_PABI_34_H_
