// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "mrscope/file.h"

namespace mrscope {
namespace {

// Between fork and exec only what is safe after fork in a program of several
// threads. Returns the errno that kept the program from starting.
int BecomeProgram(char* const* argv, const ChildOptions& options) {
  if (options.stdout_to_stderr && dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return errno;
  if (options.marker_fd >= 0 &&
      write(options.marker_fd, options.marker.data(), options.marker.size()) < 0) {
    return errno;
  }
  if (sigprocmask(SIG_SETMASK, &options.signal_mask, nullptr) != 0) return errno;
  execvp(argv[0], argv);
  return errno;
}

std::string WhyNotStarted(int error) {
  switch (error) {
    case ENOENT:
      return "no such program; check the name and PATH";
    case EACCES:
      return "it is not executable, or not accessible; check its permissions";
    case ENOEXEC:
      return "it is not a program this kernel can run";
    default:
      return ErrnoText(error);
  }
}

}  // namespace

Result<pid_t> StartChild(std::span<const std::string> argv, const ChildOptions& options) {
  if (argv.empty()) return Error{ErrorKind::kUsage, 0, "no command to run"};
  std::vector<char*> pointers;
  pointers.reserve(argv.size() + 1);
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);

  // Closed by a successful exec; carries the errno of one that failed.
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{ErrorKind::kFailed, errno, "cannot make a pipe for the program to start"};
  }
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);

  const pid_t pid = fork();
  if (pid < 0) {
    const int error = errno;
    return Error{ErrorKind::kFailed, error,
                 fmt::format("cannot start {}: {}", argv[0], ErrnoText(error))};
  }
  if (pid == 0) {
    const int error = BecomeProgram(pointers.data(), options);
    (void)!write(write_end.get(), &error, sizeof(error));
    _exit(127);
  }
  write_end.Reset();

  int error = 0;
  ssize_t got = 0;
  do {
    got = read(read_end.get(), &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  if (got == 0) return pid;
  waitpid(pid, nullptr, 0);
  return Error{ErrorKind::kFailed, error,
               fmt::format("cannot start {}: {}", argv[0], WhyNotStarted(error))};
}

void AdoptOrphans() { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

}  // namespace mrscope
