// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Registers memory, changes the MR by re-registration, and deregisters it.
//
// Usage: mr_rereg access|pd|translation
//   access       gives remote_read as well, in place
//   pd           moves it to another protection domain, in place
//   translation  lets it mean other memory, of twice the length
// Asks the kernel by write(2) where the library has no rereg for the device.
// Prints the address and length asked for, and the outcome:
//   rereg ADDR LENGTH LKEY ERRNO
// ERRNO is a name, or 0. A rereg that fails is no failure of the program.

#include <infiniband/verbs.h>

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>

#include "device.h"
#include "mrscope/file.h"
#include "write_command.h"

namespace {

constexpr std::size_t kLength = std::size_t{64} * 1024;

struct Request {
  unsigned flags = 0;
  ibv_pd* pd = nullptr;
  char* addr = nullptr;
  std::size_t length = 0;
  unsigned access = 0;
};

// 0 or an errno.
int ByWrite(const ibv_context* context, ibv_mr* mr, const Request& request) {
  ib_uverbs_rereg_mr_resp answer{};
  ReregMrBody body;
  body.response = reinterpret_cast<std::uintptr_t>(&answer);
  body.mr_handle = mr->handle;
  body.flags = request.flags;
  body.start = reinterpret_cast<std::uintptr_t>(request.addr);
  body.length = request.length;
  body.hca_va = body.start;
  body.pd_handle = request.pd != nullptr ? request.pd->handle : 0;
  body.access_flags = request.access;
  const int error = WriteCommand(context->cmd_fd, IB_USER_VERBS_CMD_REREG_MR, body, sizeof answer);
  if (error != 0) return error;
  mr->lkey = answer.lkey;
  return 0;
}

int Rereg(const ibv_context* context, ibv_mr* mr, const Request& request) {
  errno = 0;
  const int result = ibv_rereg_mr(mr, static_cast<int>(request.flags), request.pd, request.addr,
                                  request.length, static_cast<int>(request.access));
  if (result == 0) return 0;
  // EOPNOTSUPP may be the library's word alone.
  return errno == EOPNOTSUPP ? ByWrite(context, mr, request) : errno;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 2 ? argv[1] : "";
  const Device device;
  const auto other_pd = Device::Allocate(device.context);
  char* memory = MapMemory(kLength);
  char* other = MapMemory(2 * kLength);
  Request request;
  request.addr = memory;
  request.length = kLength;
  if (what == "access") {
    request.flags = IBV_REREG_MR_CHANGE_ACCESS;
    request.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
  } else if (what == "pd") {
    request.flags = IBV_REREG_MR_CHANGE_PD;
    request.pd = other_pd.get();
  } else if (what == "translation") {
    request.flags = IBV_REREG_MR_CHANGE_TRANSLATION;
    request.addr = other;
    request.length = 2 * kLength;
  } else {
    Die("usage: mr_rereg access|pd|translation");
  }

  ibv_mr* mr = ibv_reg_mr(device.pd.get(), memory, kLength, IBV_ACCESS_LOCAL_WRITE);
  if (mr == nullptr) Die("cannot register");
  const int error = Rereg(device.context.get(), mr, request);
  std::printf("rereg 0x%" PRIxPTR " %zu 0x%x %s\n", reinterpret_cast<std::uintptr_t>(request.addr),
              request.length, mr->lkey, error != 0 ? mrscope::ErrnoName(error).c_str() : "0");
  return ibv_dereg_mr(mr) == 0 ? 0 : 1;
}
