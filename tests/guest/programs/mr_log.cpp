// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// To be preloaded (LD_PRELOAD) into any program: writes each of its calls of
// ibv_reg_mr() and its kind and ibv_dereg_mr() to the file named by MR_LOG (call_log.h),
// and otherwise leaves them as they are.

#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdlib>

#include "call_log.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace {

void Write(const Call& call) {
  const char* path = std::getenv("MR_LOG");
  if (path == nullptr) return;
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string line = FormatCall(call);
  if (write(fd, line.data(), line.size()) < 0) std::abort();
  close(fd);
}

// The library's functions call one another: only what the program calls counts.
thread_local int depth = 0;

template <typename Function>
Function* Next(const char* name) {
  void* next = dlsym(RTLD_NEXT, name);
  if (next == nullptr) std::abort();
  return reinterpret_cast<Function*>(next);
}

ibv_mr* Registered(ibv_mr* mr, void* addr, std::size_t length, unsigned access) {
  const int error = errno;
  if (--depth > 0) return mr;
  Call call;
  call.tid = gettid();
  call.addr = reinterpret_cast<std::uintptr_t>(addr);
  call.length = length;
  call.access = access;
  if (mr != nullptr) {
    call.lkey = mr->lkey;
    call.rkey = mr->rkey;
  } else {
    call.error = error;
  }
  Write(call);
  errno = error;
  return mr;
}

}  // namespace

extern "C" {

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, std::size_t length, int access) {
  static const auto next = Next<decltype(ibv_reg_mr)>("ibv_reg_mr");
  ++depth;
  return Registered(next(pd, addr, length, access), addr, length, static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova,
                         unsigned access) {
  static const auto next = Next<decltype(ibv_reg_mr_iova2)>("ibv_reg_mr_iova2");
  ++depth;
  return Registered(next(pd, addr, length, iova, access), addr, length, access);
}

// Of rdma-core 65 and newer, whose examples use it.
ibv_mr* ibv_reg_buf_mr(ibv_pd* pd, struct ibv_buf* buf, void* addr, std::size_t length,
                       int access) {
  static const auto next = Next<decltype(ibv_reg_buf_mr)>("ibv_reg_buf_mr");
  ++depth;
  return Registered(next(pd, buf, addr, length, access), addr, length,
                    static_cast<unsigned>(access));
}

int ibv_dereg_mr(ibv_mr* mr) {
  static const auto next = Next<decltype(ibv_dereg_mr)>("ibv_dereg_mr");
  Call call;
  call.dereg = true;
  call.tid = gettid();
  call.addr = reinterpret_cast<std::uintptr_t>(mr->addr);
  call.length = mr->length;
  call.lkey = mr->lkey;
  call.rkey = mr->rkey;
  call.error = next(mr);
  Write(call);
  return call.error;
}

}  // extern "C"
