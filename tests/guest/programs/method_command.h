// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Registration by the ioctl method UVERBS_METHOD_REG_MR of newer kernels, whose
// request is a list of attributes. libibverbs takes this way only for what the
// older command cannot say.

#ifndef TESTS_GUEST_METHOD_COMMAND_H_
#define TESTS_GUEST_METHOD_COMMAND_H_

#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "call_log.h"

// From the kernel's ib_user_ioctl_cmds.h, which is too old in older suites.
enum : std::uint16_t { kMethodRegMr = UVERBS_METHOD_REG_DMABUF_MR + 1 };
enum : std::uint16_t {
  kRegMrHandle,
  kRegMrPdHandle,
  kRegMrDmaHandle,
  kRegMrIova,
  kRegMrAddr,
  kRegMrLength,
  kRegMrAccessFlags,
  kRegMrFd,
  kRegMrFdOffset,
  kRegMrRespLkey,
  kRegMrRespRkey,
};

// ib_uverbs_ioctl_hdr, whose array of no fixed length C++ does not know.
template <std::size_t kCount>
struct MethodCall {
  std::uint16_t length = sizeof(MethodCall);
  std::uint16_t object_id = UVERBS_OBJECT_MR;
  std::uint16_t method_id;
  std::uint16_t num_attrs = kCount;
  std::uint64_t reserved1 = 0;
  std::uint32_t driver_id = RDMA_DRIVER_RXE;
  std::uint32_t reserved2 = 0;
  std::array<ib_uverbs_attr, kCount> attributes;

  MethodCall(std::uint16_t method, const std::array<ib_uverbs_attr, kCount>& with)
      : method_id(method), attributes(with) {
    static_assert(sizeof *this == sizeof(ib_uverbs_ioctl_hdr) + sizeof attributes);
  }
  // 0 or an errno.
  int Run(int fd) { return ioctl(fd, RDMA_VERBS_IOCTL, this) == 0 ? 0 : errno; }
};

inline ib_uverbs_attr Attribute(std::uint16_t id, std::uint16_t length, std::uint64_t data) {
  ib_uverbs_attr attribute{};
  attribute.attr_id = id;
  attribute.len = length;
  attribute.flags = UVERBS_ATTR_F_MANDATORY;
  attribute.data = data;
  return attribute;
}

// Registers what CALL says and puts the keys and the errno there; gives the MR's handle.
inline std::uint32_t RegMrByMethod(int fd, std::uint32_t pd_handle, Call& call) {
  MethodCall<8> command(
      kMethodRegMr,
      {Attribute(kRegMrHandle, 0, 0), Attribute(kRegMrPdHandle, 0, pd_handle),
       Attribute(kRegMrIova, 8, call.addr), Attribute(kRegMrAddr, 8, call.addr),
       Attribute(kRegMrLength, 8, call.length), Attribute(kRegMrAccessFlags, 4, call.access),
       Attribute(kRegMrRespLkey, 4, reinterpret_cast<std::uintptr_t>(&call.lkey)),
       Attribute(kRegMrRespRkey, 4, reinterpret_cast<std::uintptr_t>(&call.rkey))});
  call.error = command.Run(fd);
  return static_cast<std::uint32_t>(command.attributes[0].data);
}

inline int DeregMrByMethod(int fd, std::uint32_t handle) {
  MethodCall<1> command(UVERBS_METHOD_MR_DESTROY,
                        {Attribute(UVERBS_ATTR_DESTROY_MR_HANDLE, 0, handle)});
  return command.Run(fd);
}

#endif  // TESTS_GUEST_METHOD_COMMAND_H_
