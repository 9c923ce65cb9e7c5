// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The guest's end of tools/vm/run: takes one command from the host over a
// virtio-serial port, runs it, and sends back what it writes, byte for byte,
// and how it ended. It is the guest's process 1.
//
// Both directions carry frames: a type byte, a 32-bit little-endian length,
// and as many bytes. One port for all keeps their order, so the exit status is
// known to be behind the last byte of output.
//
//   guest to host                      host to guest
//   H  ready; text: uptime             E  execute: TTY flag, rows, columns,
//   o  standard output                    then NUL-ended strings: folder,
//   e  standard error                     variables, an empty one, arguments
//   c  u32: input consumed             i  standard input; empty: its end
//   m  a message of the test bed       w  rows and columns
//   x  u32: exit status                s  u32: signal for the command
//
// Usage: agent PORT [MESSAGES [--fail]]

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int kExitBed = 125;  // a failure of the test bed
constexpr int kExitNotFound = 127;
constexpr int kExitNotExecutable = 126;
constexpr int kExitSignalBase = 128;
// How long a silent background process may hold the output after the command.
constexpr int64_t kLingerMs = 2000;

int64_t NowMs() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

std::string ReadFile(const char* path) {
  std::string text;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  close(fd);
  return text;
}

uint32_t GetU32(const char* p) {
  const auto* b = reinterpret_cast<const unsigned char*>(p);
  return b[0] | b[1] << 8 | b[2] << 16 | static_cast<uint32_t>(b[3]) << 24;
}

void PutU32(std::string& out, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8)
    out.push_back(static_cast<char>(value >> shift & 0xff));
}

struct Frame {
  char type = 0;
  std::string body;
};

// The virtio-serial port as a stream of frames.
class Port {
 public:
  explicit Port(const char* path) : fd_(open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)) {}

  int fd() const { return fd_; }
  bool good() const { return fd_ >= 0; }

  void Send(char type, std::string_view body) {
    std::string frame(1, type);
    PutU32(frame, static_cast<uint32_t>(body.size()));
    frame += body;
    for (size_t done = 0; done < frame.size();) {
      const ssize_t n = write(fd_, frame.data() + done, frame.size() - done);
      if (n > 0) {
        done += static_cast<size_t>(n);
      } else {
        pollfd p{fd_, POLLOUT, 0};
        poll(&p, 1, 100);
      }
    }
  }

  void SendU32(char type, uint32_t value) {
    std::string body;
    PutU32(body, value);
    Send(type, body);
  }

  // Takes what has arrived; false if there was nothing.
  bool Fill() {
    char buffer[16384];
    const ssize_t n = read(fd_, buffer, sizeof buffer);
    if (n <= 0) return false;
    received_.append(buffer, static_cast<size_t>(n));
    return true;
  }

  bool Next(Frame& frame) {
    constexpr size_t kHeader = 5;
    if (received_.size() < kHeader) return false;
    const size_t length = GetU32(received_.data() + 1);
    if (received_.size() < kHeader + length) return false;
    frame.type = received_[0];
    frame.body = received_.substr(kHeader, length);
    received_.erase(0, kHeader + length);
    return true;
  }

  Frame Wait() {
    Frame frame;
    while (!Next(frame)) {
      pollfd p{fd_, POLLIN, 0};
      poll(&p, 1, 1000);
      if (!Fill()) usleep(1000);
    }
    return frame;
  }

 private:
  int fd_;
  std::string received_;
};

struct Command {
  bool tty = false;
  winsize size{};
  std::string folder;
  std::vector<std::string> variables;
  std::vector<std::string> arguments;
};

winsize GetSize(const char* p) {
  winsize size{};
  size.ws_row = static_cast<unsigned short>(GetU32(p));
  size.ws_col = static_cast<unsigned short>(GetU32(p + 4));
  return size;
}

Command Parse(const std::string& body) {
  constexpr size_t kFixed = 9;
  Command command;
  command.tty = body[0] != 0;
  command.size = GetSize(body.data() + 1);
  std::vector<std::string> strings;
  for (size_t at = kFixed; at < body.size();) {
    strings.emplace_back(body.c_str() + at);
    at += strings.back().size() + 1;
  }
  command.folder = strings.at(0);
  size_t i = 1;
  for (; i < strings.size() && !strings[i].empty(); ++i) command.variables.push_back(strings[i]);
  for (++i; i < strings.size(); ++i) command.arguments.push_back(strings[i]);
  return command;
}

// The running command and our ends of its pipes (or of its terminal).
class Child {
 public:
  explicit Child(const Command& command) {
    int in[2] = {-1, -1};
    int out[2] = {-1, -1};
    int err[2] = {-1, -1};
    std::string terminal;
    if (command.tty) {
      const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
      grantpt(master);
      unlockpt(master);
      terminal = ptsname(master);
      ioctl(master, TIOCSWINSZ, &command.size);
      in_ = master;
      out_ = fcntl(master, F_DUPFD_CLOEXEC, 0);
    } else {
      if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) return;
      in_ = in[1];
      out_ = out[0];
      err_ = err[0];
    }
    pid_ = fork();
    if (pid_ == 0) {
      setsid();
      if (command.tty) {
        const int fd = open(terminal.c_str(), O_RDWR);
        ioctl(fd, TIOCSCTTY, 0);
        for (int i = 0; i < 3; ++i) dup2(fd, i);
        if (fd > 2) close(fd);
      } else {
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(err[1], 2);
      }
      Execute(command);
    }
    for (const int fd : {in[0], out[1], err[1]})
      if (fd >= 0) close(fd);
    for (const int fd : {in_, out_, err_})
      if (fd >= 0) fcntl(fd, F_SETFL, O_NONBLOCK);
  }

  pid_t pid() const { return pid_; }
  int& in() { return in_; }
  int& out() { return out_; }
  int& err() { return err_; }

  static void Close(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }

 private:
  [[noreturn]] static void Execute(const Command& command) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGPIPE, SIG_DFL);
    clearenv();
    for (const std::string& v : command.variables) putenv(const_cast<char*>(v.c_str()));
    if (chdir(command.folder.c_str())) perror(command.folder.c_str());
    std::vector<char*> argv;
    for (const std::string& a : command.arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    const int error = errno;
    fprintf(stderr, "%s: %s\n", argv[0], strerror(error));
    _exit(error == ENOENT ? kExitNotFound : kExitNotExecutable);
  }

  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
};

class Session {
 public:
  Session(Port& port, int signals, const Command& command)
      : port_(port), signals_(signals), child_(command), tty_(command.tty) {}

  uint32_t Run() {
    TakeFrames();  // those that came with the command
    while (!Finished()) {
      pollfd fds[] = {
          {port_.fd(), POLLIN, 0},
          {signals_, POLLIN, 0},
          {child_.out(), POLLIN, 0},
          {child_.err(), POLLIN, 0},
          {pending_.empty() && !end_of_input_ ? -1 : child_.in(), POLLOUT, 0},
      };
      poll(fds, std::size(fds), exited_ ? 100 : 1000);
      if (fds[2].revents) Forward('o', child_.out());
      if (fds[3].revents) Forward('e', child_.err());
      if (fds[0].revents & POLLIN && port_.Fill()) TakeFrames();
      if (fds[4].revents) FeedInput();
      Reap();
    }
    return status_;
  }

 private:
  bool Finished() {
    if (!exited_) return false;
    return (child_.out() < 0 && child_.err() < 0) || NowMs() - last_activity_ > kLingerMs;
  }

  void Forward(char type, int& fd) {
    static char buffer[65536];
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n > 0) {
      port_.Send(type, {buffer, static_cast<size_t>(n)});
      last_activity_ = NowMs();
    } else if (n == 0 || errno != EAGAIN) {
      Child::Close(fd);
    }
  }

  void TakeFrames() {
    Frame frame;
    while (port_.Next(frame)) {
      switch (frame.type) {
        case 'i':
          if (frame.body.empty()) {
            end_of_input_ = true;
          } else {
            pending_ += frame.body;
          }
          break;
        case 'w': {
          const winsize size = GetSize(frame.body.data());
          ioctl(child_.out(), TIOCSWINSZ, &size);
          break;
        }
        case 's':
          kill(-child_.pid(), static_cast<int>(GetU32(frame.body.data())));
          break;
        default:
          break;
      }
    }
  }

  void FeedInput() {
    if (!pending_.empty()) {
      const ssize_t n = write(child_.in(), pending_.data(), pending_.size());
      if (n > 0) {
        pending_.erase(0, static_cast<size_t>(n));
        port_.SendU32('c', static_cast<uint32_t>(n));
      } else if (errno != EAGAIN) {
        // Nobody reads any more: swallow the rest.
        port_.SendU32('c', static_cast<uint32_t>(pending_.size()));
        pending_.clear();
        Child::Close(child_.in());
      }
    }
    if (pending_.empty() && end_of_input_ && !tty_) Child::Close(child_.in());
  }

  void Reap() {
    signalfd_siginfo ignored;
    while (read(signals_, &ignored, sizeof ignored) > 0) {
    }
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid != child_.pid()) continue;
      exited_ = true;
      last_activity_ = NowMs();
      status_ = static_cast<uint32_t>(WIFEXITED(status) ? WEXITSTATUS(status)
                                                        : kExitSignalBase + WTERMSIG(status));
    }
  }

  Port& port_;
  int signals_;
  Child child_;
  bool tty_;
  bool exited_ = false;
  bool end_of_input_ = false;
  uint32_t status_ = kExitBed;
  int64_t last_activity_ = 0;
  std::string pending_;
};

// What the command wrote to the repository must reach the host.
void SyncRepository() {
  const int fd = open("/repo", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  syncfs(fd);
  close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return kExitBed;
  Port port(argv[1]);
  if (!port.good()) {
    perror(argv[1]);
    return kExitBed;
  }
  signal(SIGPIPE, SIG_IGN);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  sigprocmask(SIG_BLOCK, &mask, nullptr);
  const int signals = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);

  port.Send('H', ReadFile("/proc/uptime"));
  if (argc > 2) {
    const std::string messages = ReadFile(argv[2]);
    if (!messages.empty()) port.Send('m', messages);
  }
  uint32_t status = kExitBed;
  if (argc <= 3) {
    Frame frame;
    while ((frame = port.Wait()).type != 'E') {
    }
    status = Session(port, signals, Parse(frame.body)).Run();
    SyncRepository();
  }
  port.SendU32('x', status);
  // The host ends the machine now; if it does not, so do we.
  sleep(10);
  reboot(RB_POWER_OFF);
  return 0;
}
