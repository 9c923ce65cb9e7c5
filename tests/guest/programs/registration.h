// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// An MR however it came about: by the library, by write(2), or by the ioctl
// method of newer kernels.

#ifndef TESTS_GUEST_REGISTRATION_H_
#define TESTS_GUEST_REGISTRATION_H_

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <memory>

#include "call_log.h"
#include "device.h"
#include "method_command.h"
#include "write_command.h"

class Registration {
 public:
  virtual ~Registration() = default;
  // 0 or an errno; on failure the MR stays and may be tried again.
  virtual int Deregister() = 0;
};

class LibraryRegistration : public Registration {
 public:
  explicit LibraryRegistration(ibv_mr* mr) : mr_(mr) {}
  int Deregister() override { return ibv_dereg_mr(mr_); }

 private:
  ibv_mr* mr_;
};

class WriteRegistration : public Registration {
 public:
  WriteRegistration(int fd, std::uint32_t handle) : fd_(fd), handle_(handle) {}
  int Deregister() override {
    DeregMrBody body;
    body.mr_handle = handle_;
    return WriteCommand(fd_, IB_USER_VERBS_CMD_DEREG_MR, body, 0);
  }
  std::uint32_t handle() const { return handle_; }

 private:
  int fd_;
  std::uint32_t handle_;
};

class MethodRegistration : public Registration {
 public:
  MethodRegistration(int fd, std::uint32_t handle) : fd_(fd), handle_(handle) {}
  int Deregister() override { return DeregMrByMethod(fd_, handle_); }

 private:
  int fd_;
  std::uint32_t handle_;
};

// Each registers what CALL says, and puts the keys or the errno there.

inline std::unique_ptr<Registration> ByLibrary(const Device& device, Call& call) {
  void* memory = reinterpret_cast<void*>(call.addr);  // NOLINT(performance-no-int-to-ptr)
  // Not a constant, so the macro takes the way that knows optional flags.
  ibv_mr* mr = ibv_reg_mr(device.pd.get(), memory, call.length, static_cast<int>(call.access));
  if (mr == nullptr) {
    call.error = errno;
    return nullptr;
  }
  call.lkey = mr->lkey;
  call.rkey = mr->rkey;
  return std::make_unique<LibraryRegistration>(mr);
}

// A bad answer is one that the kernel cannot put anywhere.
inline std::unique_ptr<Registration> ByWrite(const Device& device, Call& call,
                                             bool bad_answer = false) {
  RegMrBody body;
  ib_uverbs_reg_mr_resp answer{};
  body.response = bad_answer ? 1 : reinterpret_cast<std::uintptr_t>(&answer);
  body.start = call.addr;
  body.length = call.length;
  body.hca_va = call.addr;
  body.pd_handle = device.pd.get()->handle;
  body.access_flags = call.access;
  const int fd = device.context.get()->cmd_fd;
  call.error = WriteCommand(fd, IB_USER_VERBS_CMD_REG_MR, body, sizeof answer);
  if (call.error != 0) return nullptr;
  call.lkey = answer.lkey;
  call.rkey = answer.rkey;
  return std::make_unique<WriteRegistration>(fd, answer.mr_handle);
}

inline std::unique_ptr<Registration> ByMethod(const Device& device, Call& call) {
  const int fd = device.context.get()->cmd_fd;
  const std::uint32_t handle = RegMrByMethod(fd, device.pd.get()->handle, call);
  if (call.error != 0) return nullptr;
  return std::make_unique<MethodRegistration>(fd, handle);
}

#endif  // TESTS_GUEST_REGISTRATION_H_
