// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The operations of this provider, by the file that they are in. Those that are
// not here are libibverbs' own commands (ops.cpp).

#ifndef MRLAB_PROVIDER_OPS_H_
#define MRLAB_PROVIDER_OPS_H_

#include "verbs_abi.h"

namespace mrlab {

// ops.cpp

// Gives a new context its operations. Fails with EPROTO, and says so, if
// libibverbs has not put them where its public header says that they are.
int SetOps(verbs_context* context);

// context.cpp
verbs_context* OpenContext(ibv_device* device, int cmd_fd, void* private_data);
FreeContext CloseContext;
QueryDevice QueryDeviceAttr;
QueryPort QueryPortAttr;
AllocPd MakePd;
DeallocPd FreePd;

// mr.cpp
RegMr Register;
RegDmabufMr RegisterDmabuf;
ReregMr Reregister;
DeregMr Deregister;

#if MRLAB_PABI >= 65
// mr_ex.cpp
RegMrEx RegisterEx;
#endif

// cq.cpp
CreateCq MakeCq;
CreateCqEx MakeCqEx;
ResizeCq Resize;
DestroyCq FreeCq;

// data_path.cpp
PollCq Poll;
PostSend Send;
PostRecv Receive;

// qp.cpp
CreateQp MakeQp;
CreateQpEx MakeQpEx;
ModifyQp Modify;
QueryQp QueryQpAttr;
DestroyQp FreeQp;

}  // namespace mrlab

#endif  // MRLAB_PROVIDER_OPS_H_
