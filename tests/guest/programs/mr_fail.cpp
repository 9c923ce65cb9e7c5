// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Makes one allocation fail inside of one thing that the kernel is asked for,
// by /proc/PID/fail-nth. Needs a kernel with fault injection (debug).
//
// Usage: mr_fail N insmod FILE [PARAMETERS]
//        mr_fail N write FILE TEXT
//        mr_fail N reg LENGTH        of touched memory; deregistered again
//        mr_fail N make cq|qp        destroyed again
// The Nth allocation of the call fails. Prints two words: "injected", or "none"
// where the call made fewer than N, and its errno by name, or 0.

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "device.h"
#include "mrscope/file.h"
#include "registration.h"

namespace {

int Open(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) Die("cannot open " + path);
  return fd;
}

void Arm(int fd, const std::string& nth) {
  if (pwrite(fd, nth.data(), nth.size(), 0) < 0) Die("cannot write fail-nth");
}

// Whether an allocation has failed since Arm(): nothing is left to count down.
bool Failed(int fd) {
  char left[16] = {};
  if (pread(fd, left, sizeof left - 1, 0) <= 0) Die("cannot read fail-nth");
  return left[0] == '0';
}

void Run(const std::string& nth, const std::function<int()>& call) {
  const int fd = Open("/proc/thread-self/fail-nth", O_RDWR);
  Arm(fd, nth);
  const int error = call();
  const bool failed = Failed(fd);
  Arm(fd, "0");
  std::printf("%s %s\n", failed ? "injected" : "none",
              error == 0 ? "0" : mrscope::ErrnoName(error).c_str());
}

void RunInsmod(const std::string& nth, const std::string& file, const std::string& parameters) {
  const int module = Open(file, O_RDONLY);
  Run(nth, [&] { return syscall(SYS_finit_module, module, parameters.c_str(), 0) ? errno : 0; });
}

void RunWrite(const std::string& nth, const std::string& file, const std::string& text) {
  const int fd = Open(file, O_WRONLY);
  Run(nth, [&] { return write(fd, text.data(), text.size()) < 0 ? errno : 0; });
}

void RunReg(const std::string& nth, const std::string& length) {
  const Device device;
  Call call;
  call.length = std::stoull(length);
  char* memory = MapMemory(call.length);
  for (std::size_t at = 0; at < call.length; at += 4096) memory[at] = 1;
  call.addr = reinterpret_cast<std::uintptr_t>(memory);
  call.access = IBV_ACCESS_LOCAL_WRITE;
  std::unique_ptr<Registration> registration;
  Run(nth, [&] {
    registration = ByLibrary(device, call);
    return call.error;
  });
  if (registration && registration->Deregister() != 0) Die("cannot deregister");
}

void RunMakeCq(const std::string& nth) {
  const Device device;
  ibv_cq* cq = nullptr;
  Run(nth, [&] {
    cq = ibv_create_cq(device.context.get(), 64, nullptr, nullptr, 0);
    return cq == nullptr ? errno : 0;
  });
  if (cq != nullptr && ibv_destroy_cq(cq) != 0) Die("cannot destroy");
}

void RunMakeQp(const std::string& nth) {
  const Device device;
  ibv_cq* cq = ibv_create_cq(device.context.get(), 64, nullptr, nullptr, 0);
  if (cq == nullptr) Die("no CQ");
  ibv_qp_init_attr init{};
  init.send_cq = cq;
  init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {.max_send_wr = 16,
              .max_recv_wr = 16,
              .max_send_sge = 4,
              .max_recv_sge = 4,
              .max_inline_data = 64};
  ibv_qp* qp = nullptr;
  Run(nth, [&] {
    qp = ibv_create_qp(device.pd.get(), &init);
    return qp == nullptr ? errno : 0;
  });
  if (qp != nullptr && ibv_destroy_qp(qp) != 0) Die("cannot destroy");
  if (ibv_destroy_cq(cq) != 0) Die("cannot destroy");
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::string what = words.size() > 2 ? words[1] : "";
  if (what == "insmod" && words.size() <= 4) {
    RunInsmod(words[0], words[2], words.size() == 4 ? words[3] : "");
  } else if (what == "write" && words.size() == 4) {
    RunWrite(words[0], words[2], words[3]);
  } else if (what == "reg" && words.size() == 3) {
    RunReg(words[0], words[2]);
  } else if (what == "make" && words[2] == "cq") {
    RunMakeCq(words[0]);
  } else if (what == "make" && words[2] == "qp") {
    RunMakeQp(words[0]);
  } else {
    Die("usage: mr_fail N insmod FILE [PARAMETERS] | write FILE TEXT | reg LENGTH | make cq|qp");
  }
  return 0;
}
