// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/load_refusal.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "mrscope/file.h"

namespace mrscope {
namespace {

struct Message {
  std::string_view text;  // part of the kernel's message
  bool names_module;      // behind "mrscope: "; else it names none
  const char* why;
  const char* remedy;
};

constexpr const char* kSign =
    "sign mrscope.ko with a key that this host trusts (DKMS does, once its key is enrolled with "
    "mokutil), or switch Secure Boot off";

// kernel/module of Linux 6.1 to 7.2. Where two fit, the former says more.
constexpr std::array kMessages = {
    Message{"disagrees about version of symbol ib_", true,
            "it was built for another ib_core than the loaded one",
            "where MLNX_OFED or DOCA is installed, build with make kmod "
            "OFED=/usr/src/ofa_kernel/default, else without OFED="},
    Message{"disagrees about version of symbol", true, "it was built for another kernel",
            "build it for the running kernel: make kmod"},
    Message{"version magic", true, "it was built for another kernel",
            "build it for the running kernel: make kmod"},
    Message{"Unknown symbol ib_", true, "ib_core is not loaded", "modprobe ib_core, then insmod"},
    Message{"Unknown symbol", true, "this kernel lacks a function that it needs",
            "build it for the running kernel: make kmod"},
    Message{"unsigned module loading is restricted", false,
            "lockdown, as under Secure Boot, takes signed modules only", kSign},
    Message{"Loading of unsigned module is rejected", false,
            "Secure Boot or module.sig_enforce takes signed modules only", kSign},
    Message{"Loading of module with unavailable key is rejected", false,
            "it is signed with a key that this host does not trust", kSign},
    Message{"Loading of module with unsupported crypto is rejected", false,
            "it is signed in a manner that this kernel does not know", kSign},
};

const Message* Match(std::string_view line) {
  const bool named = line.find("mrscope: ") != std::string_view::npos;
  for (const Message& message : kMessages) {
    if (message.names_module && !named) continue;
    if (line.find(message.text) != std::string_view::npos) return &message;
  }
  return nullptr;
}

}  // namespace

std::optional<LoadRefusal> FindLoadRefusal(std::string_view log) {
  const Message* found = nullptr;
  while (!log.empty()) {
    const std::size_t end = log.find('\n');
    const Message* message = Match(log.substr(0, end));
    // One refusal may have two messages, of which the first says more.
    const bool follows = found != nullptr && message != nullptr && message->names_module &&
                         found->names_module && message > found;
    if (message != nullptr && !follows) found = message;
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
  }
  if (found == nullptr) return std::nullopt;
  return LoadRefusal{found->why, found->remedy};
}

std::string ReadKernelLog(const std::string& root) {
  // One record for each read; a reader that was overtaken goes on.
  const UniqueFd log(open((root + "/dev/kmsg").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::string text;
  std::array<char, 8192> record{};
  while (log.ok()) {
    const ssize_t got = read(log.get(), record.data(), record.size());
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (got <= 0) break;
    text.append(record.data(), static_cast<std::size_t>(got));
    if (text.back() != '\n') text += '\n';
  }
  return text;
}

}  // namespace mrscope
