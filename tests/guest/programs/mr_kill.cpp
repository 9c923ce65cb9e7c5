// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Kills a process by SIGKILL while it is in the middle of ibv_reg_mr(): its
// child registers untouched memory, and is killed a moment later. Tries again,
// after other moments, until the child was killed before the call returned.
//
// Usage: mr_kill BYTES
// Prints the child's "reg TID ADDR LENGTH" of the try that hit.

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "device.h"

namespace {

constexpr int kTries = 20;
constexpr useconds_t kStep = 50'000;

// What the child says: where its memory is, then that it has come through.
struct Message {
  std::uint64_t addr = 0;
};

[[noreturn]] void Child(std::size_t length, int pipe) {
  const Device device;
  char* memory = MapMemory(length);
  Message message{reinterpret_cast<std::uintptr_t>(memory)};
  if (write(pipe, &message, sizeof message) != sizeof message) _exit(1);
  if (ibv_reg_mr(device.pd.get(), memory, length, IBV_ACCESS_LOCAL_WRITE) == nullptr) _exit(1);
  if (write(pipe, &message, sizeof message) != sizeof message) _exit(1);
  pause();
  _exit(0);
}

// Whether the child was killed within the call.
bool Try(std::size_t length, useconds_t delay) {
  std::array<int, 2> pipe{};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) Die("no pipe");
  const pid_t child = fork();
  if (child == 0) Child(length, pipe[1]);
  close(pipe[1]);
  Message message;
  if (read(pipe[0], &message, sizeof message) != sizeof message) Die("the child has failed");
  usleep(delay);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  Message second;
  const bool came_through = read(pipe[0], &second, sizeof second) > 0;
  close(pipe[0]);
  if (!WIFSIGNALED(status) || came_through) return false;
  std::printf("reg %d 0x%" PRIx64 " %zu\n", child, message.addr, length);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) Die("usage: mr_kill BYTES");
  const std::size_t length = std::strtoull(argv[1], nullptr, 0);
  // From early to late: the first moments are in the pin if anything is.
  for (int i = 1; i <= kTries; ++i)
    if (Try(length, static_cast<useconds_t>(i) * kStep)) return 0;
  Die("no try has hit");
}
