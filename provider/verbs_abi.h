// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The part of libibverbs' private interface that this provider uses. Its
// headers are installed nowhere, so that its layout is declared here; names of
// types and functions are the library's. The interface has a number of its own,
// in the version of its symbols (IBVERBS_PRIVATE_34), which the linker records:
// the provider loads into that libibverbs and no other.
//
// To add a number: abi/pabi_NN.h, and the list in CMakeLists.txt.

#ifndef MRLAB_PROVIDER_VERBS_ABI_H_
#define MRLAB_PROVIDER_VERBS_ABI_H_

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

// ---- commands ----

// A command: a header and the kernel's structure. libibverbs fills in both.
template <typename Payload>
struct UverbsCommand {
  ib_uverbs_cmd_hdr header;
  alignas(Payload) std::byte payload[sizeof(Payload)];
};

// ---- devices ----

struct verbs_sysfs_dev;

// One way to recognize a device; a table of them ends with kMatchEnd.
struct verbs_match_ent {
  void* driver_data;
  union {
    const char* modalias;
    std::uint64_t driver_id;
  } u;
  std::uint16_t vendor;
  std::uint16_t device;
  std::uint8_t kind;
};
inline constexpr std::uint8_t kMatchEnd = 0;
inline constexpr std::uint8_t kMatchModalias = 2;

struct verbs_device;

struct verbs_device_ops {
  const char* name;
  std::uint32_t match_min_abi_version;
  std::uint32_t match_max_abi_version;
  const verbs_match_ent* match_table;
  const verbs_device_ops** static_providers;
  bool (*match_device)(verbs_sysfs_dev* sysfs);
  verbs_context* (*alloc_context)(ibv_device* device, int cmd_fd, void* private_data);
  verbs_context* (*import_context)(ibv_device* device, int cmd_fd);
  verbs_device* (*alloc_device)(verbs_sysfs_dev* sysfs);
  void (*uninit_device)(verbs_device* device);
};

// libibverbs fills it in; the provider only allocates it.
struct verbs_device {
  ibv_device device;
  const verbs_device_ops* ops;
  int refcount;
  struct {
    void* next;
    void* prev;
  } entry;
  verbs_sysfs_dev* sysfs;
  std::uint64_t core_support;
};

// ---- objects ----

struct verbs_mr {
  ibv_mr mr;
  int mr_type;
  int access;
};

union verbs_cq {
  ibv_cq cq;
  ibv_cq_ex cq_ex;
};

// ibv_qp_to_qp_ex() reads comp_mask of every QP, also of one that was not made
// with ibv_cmd_create_qp_ex(): it has to be there, and 0.
struct verbs_qp {
  union {
    ibv_qp qp;
    ibv_qp_ex qp_ex;
  };
  std::uint32_t comp_mask;
  void* xrcd;
};

// ---- operations ----

using AdviseMr = int(ibv_pd*, ibv_advise_mr_advice, std::uint32_t flags, ibv_sge*,
                     std::uint32_t num_sge);
using AllocPd = ibv_pd*(ibv_context*);
using CreateCq = ibv_cq*(ibv_context*, int cqe, ibv_comp_channel*, int comp_vector);
using CreateCqEx = ibv_cq_ex*(ibv_context*, ibv_cq_init_attr_ex*);
using CreateQp = ibv_qp*(ibv_pd*, ibv_qp_init_attr*);
using CreateQpEx = ibv_qp*(ibv_context*, ibv_qp_init_attr_ex*);
using DeallocPd = int(ibv_pd*);
using DeregMr = int(verbs_mr*);
using DestroyCq = int(ibv_cq*);
using DestroyQp = int(ibv_qp*);
using FreeContext = void(ibv_context*);
using ModifyQp = int(ibv_qp*, ibv_qp_attr*, int mask);
using PollCq = int(ibv_cq*, int num_entries, ibv_wc*);
using PostRecv = int(ibv_qp*, ibv_recv_wr*, ibv_recv_wr** bad);
using PostSend = int(ibv_qp*, ibv_send_wr*, ibv_send_wr** bad);
using QueryDevice = int(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*,
                        std::size_t attr_size);
using QueryPort = int(ibv_context*, std::uint8_t port, ibv_port_attr*);
using QueryQp = int(ibv_qp*, ibv_qp_attr*, int mask, ibv_qp_init_attr*);
using RegDmabufMr = ibv_mr*(ibv_pd*, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                            int fd, int access);
using RegMr = ibv_mr*(ibv_pd*, void* addr, std::size_t length, std::uint64_t iova, int access);
using ReqNotifyCq = int(ibv_cq*, int solicited_only);
using ReregMr = int(verbs_mr*, int flags, ibv_pd*, void* addr, std::size_t length, int access);
using ResizeCq = int(ibv_cq*, int cqe);
// Not of this provider: what is null, libibverbs answers with EOPNOTSUPP.
using Unused = void();

// ---- what differs ----

#if MRLAB_PABI == 34
#include "abi/pabi_34.h"
#elif MRLAB_PABI == 65
#include "abi/pabi_65.h"
#else
#error "no layout is known of this private interface of libibverbs"
#endif

static_assert(sizeof(verbs_context_ops) == kContextOps * sizeof(Unused*));

// ---- functions ----

extern "C" {

// Both fail with errno set, and then have closed cmd_fd.
void* _verbs_init_and_alloc_context(ibv_device* device, int cmd_fd, std::size_t size,
                                    verbs_context* offset, std::uint32_t driver_id);
void verbs_uninit_context(verbs_context* context);
void verbs_set_ops(verbs_context* context, const verbs_context_ops* ops);

// Those that return int return 0 or an errno, but for ibv_cmd_poll_cq(): the
// number of completions, or -1.
int ibv_cmd_query_device_any(ibv_context* context, const ibv_query_device_ex_input* input,
                             ibv_device_attr_ex* attr, std::size_t attr_size,
                             ib_uverbs_ex_query_device_resp* response, std::size_t* response_size);
int ibv_cmd_query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr,
                       UverbsCommand<ib_uverbs_query_port>* command, std::size_t command_size);

int ibv_cmd_alloc_pd(ibv_context* context, ibv_pd* pd, UverbsCommand<ib_uverbs_alloc_pd>* command,
                     std::size_t command_size, ib_uverbs_alloc_pd_resp* response,
                     std::size_t response_size);
int ibv_cmd_dealloc_pd(ibv_pd* pd);

int ibv_cmd_reg_mr(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova, int access,
                   verbs_mr* mr, UverbsCommand<ib_uverbs_reg_mr>* command, std::size_t command_size,
                   ib_uverbs_reg_mr_resp* response, std::size_t response_size);
int ibv_cmd_rereg_mr(verbs_mr* mr, std::uint32_t flags, void* addr, std::size_t length,
                     std::uint64_t iova, int access, ibv_pd* pd,
                     UverbsCommand<ib_uverbs_rereg_mr>* command, std::size_t command_size,
                     ib_uverbs_rereg_mr_resp* response, std::size_t response_size);
// Up to rdma-core 53 without the last argument, under the same number: as null
// it does no harm there.
int ibv_cmd_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                          int fd, int access, verbs_mr* mr, void* driver_attributes);
DeregMr ibv_cmd_dereg_mr;
AdviseMr ibv_cmd_advise_mr;

int ibv_cmd_create_cq(ibv_context* context, int cqe, ibv_comp_channel* channel, int comp_vector,
                      ibv_cq* cq, UverbsCommand<ib_uverbs_create_cq>* command,
                      std::size_t command_size, ib_uverbs_create_cq_resp* response,
                      std::size_t response_size);
int ibv_cmd_resize_cq(ibv_cq* cq, int cqe, UverbsCommand<ib_uverbs_resize_cq>* command,
                      std::size_t command_size, ib_uverbs_resize_cq_resp* response,
                      std::size_t response_size);
DestroyCq ibv_cmd_destroy_cq;
PollCq ibv_cmd_poll_cq;
ReqNotifyCq ibv_cmd_req_notify_cq;

int ibv_cmd_create_qp(ibv_pd* pd, ibv_qp* qp, ibv_qp_init_attr* attr,
                      UverbsCommand<ib_uverbs_create_qp>* command, std::size_t command_size,
                      ib_uverbs_create_qp_resp* response, std::size_t response_size);
int ibv_cmd_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init_attr,
                     UverbsCommand<ib_uverbs_query_qp>* command, std::size_t command_size);
int ibv_cmd_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask,
                      UverbsCommand<ib_uverbs_modify_qp>* command, std::size_t command_size);
DestroyQp ibv_cmd_destroy_qp;
PostSend ibv_cmd_post_send;
PostRecv ibv_cmd_post_recv;

}  // extern "C"

#endif  // MRLAB_PROVIDER_VERBS_ABI_H_
