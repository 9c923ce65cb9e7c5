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

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "call_log.h"
#include "device.h"
#include "mrscope/access.h"
#include "options.h"
#include "registration.h"

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

std::unique_ptr<Registration> Register(const Options& options, const Device& device, Call& call) {
  if (options.Flag("--by-method")) return ByMethod(device, call);
  const bool bad_answer = options.Flag("--bad-answer");
  if (bad_answer || options.Flag("--by-write")) return ByWrite(device, call, bad_answer);
  return ByLibrary(device, call);
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
    auto registration = Register(options, device, call);
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
