// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Registers memory in one of many manners, then deregisters it or leaves it to
// the kernel.
//
// Usage: mr_reg [--size N] [--count N] [--access FLAGS] [--untouched]
//               [--read-only | --unmapped] [--by-write | --by-method | --bad-answer]
//               [--leave HOW]
//   --size N       of the first; each further one is a page longer
//   --by-write     ask by write(2), as old libraries did, instead of ioctl(2)
//   --by-method    ask by the ioctl method of newer kernels
//   --bad-answer   by write, and where no answer can be put
//   --leave HOW    exit   end without deregistering
//                  kill   be killed by SIGKILL
//                  heir   end, while a child of another name keeps the file open
//                         for a while longer
//                  wait   hold them until SIGTERM
// Prints a line for each registration (call_log.h), and one for each
// deregistration of its own. A registration that fails is no failure of the
// program.

#include <infiniband/verbs.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "call_log.h"
#include "device.h"
#include "method_command.h"
#include "mrscope/access.h"
#include "options.h"
#include "write_command.h"

namespace {

constexpr std::size_t kPage = 4096;
constexpr unsigned kHeirSeconds = 2;

char* Memory(const Options& options, std::size_t length) {
  char* memory = MapMemory(length);
  if (!options.Flag("--untouched") && !options.Flag("--unmapped"))
    for (std::size_t at = 0; at < length; at += kPage) memory[at] = 1;
  if (options.Flag("--read-only")) mprotect(memory, length, PROT_READ);
  if (options.Flag("--unmapped")) munmap(memory, length);
  return memory;
}

// An MR however it came about.
class Registration {
 public:
  virtual ~Registration() = default;
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

std::unique_ptr<Registration> ByLibrary(const Device& device, char* memory, Call& call) {
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

std::unique_ptr<Registration> ByWrite(const Device& device, Call& call, bool bad_answer) {
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

std::unique_ptr<Registration> ByMethod(const Device& device, Call& call) {
  const int fd = device.context.get()->cmd_fd;
  const std::uint32_t handle = RegMrByMethod(fd, device.pd.get()->handle, call);
  if (call.error != 0) return nullptr;
  return std::make_unique<MethodRegistration>(fd, handle);
}

std::unique_ptr<Registration> Register(const Options& options, const Device& device, char* memory,
                                       Call& call) {
  if (options.Flag("--by-method")) return ByMethod(device, call);
  const bool bad_answer = options.Flag("--bad-answer");
  if (bad_answer || options.Flag("--by-write")) return ByWrite(device, call, bad_answer);
  return ByLibrary(device, memory, call);
}

void Say(const Call& call) { std::cout << FormatCall(call) << std::flush; }

[[noreturn]] void Leave(const std::string& how) {
  if (how == "kill") raise(SIGKILL);
  if (how == "heir" && fork() == 0) {
    prctl(PR_SET_NAME, "heir");
    // Whoever waits for our output is not to wait for the heir.
    close(STDOUT_FILENO);
    sleep(kHeirSeconds);
  }
  if (how == "wait") {
    signal(SIGTERM, [](int) { _exit(0); });
    for (;;) pause();
  }
  _exit(0);
}

void Run(const Options& options, std::uint32_t access) {
  const Device device;
  const std::uint64_t count = options.Number("--count");
  std::vector<std::pair<Call, std::unique_ptr<Registration>>> made;
  for (std::uint64_t i = 0; i < count; ++i) {
    Call call;
    call.tid = gettid();
    call.length = options.Number("--size") + i * kPage;
    char* memory = Memory(options, call.length);
    call.addr = reinterpret_cast<std::uintptr_t>(memory);
    call.access = access;
    auto registration = Register(options, device, memory, call);
    Say(call);
    if (registration) made.emplace_back(call, std::move(registration));
  }
  if (options.Text("--leave") != "no") Leave(options.Text("--leave"));
  for (auto& [call, registration] : made) {
    call.dereg = true;
    call.error = registration->Deregister();
    Say(call);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options options({argv, static_cast<std::size_t>(argc)}, {{"--size", "4096"},
                                                                 {"--count", "1"},
                                                                 {"--access", "local_write"},
                                                                 {"--untouched", ""},
                                                                 {"--read-only", ""},
                                                                 {"--unmapped", ""},
                                                                 {"--by-write", ""},
                                                                 {"--by-method", ""},
                                                                 {"--bad-answer", ""},
                                                                 {"--leave", "no"}});
  const auto access = mrscope::ParseAccess(options.Text("--access"));
  if (!access) Die(access.error().message);
  Run(options, *access);
  return 0;
}
