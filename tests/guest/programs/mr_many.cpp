// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Many registrations by several threads at once, each deregistered again, of
// places and lengths by chance. Every 50th lacks local_write and is refused.
//
// Usage: mr_many [--threads N] [--count N] [--seed N] [--log FILE]
//   --count N   registrations in all; 0 goes on until SIGTERM
// Prints how many calls were made, and writes each to FILE (call_log.h).

#include <infiniband/verbs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "call_log.h"
#include "device.h"
#include "options.h"

namespace {

constexpr std::size_t kMemory = std::size_t{256} * 1024;
constexpr std::size_t kLongest = std::size_t{16} * 1024;
constexpr unsigned kRefusedEvery = 50;

std::atomic<bool> stop{false};

class Worker {
 public:
  Worker(const Device& device, std::uint64_t seed, bool keep)
      : device_(device), random_(seed), keep_(keep), memory_(MapMemory(kMemory)) {
    for (std::size_t at = 0; at < kMemory; at += 4096) memory_[at] = 1;
  }

  // `count` 0 goes on until `stop`.
  void Run(std::uint64_t count) {
    for (std::uint64_t i = 0; count == 0 ? !stop : i < count; ++i) One(i);
  }

  std::uint64_t made() const { return made_; }
  const std::vector<Call>& calls() const { return calls_; }

 private:
  void One(std::uint64_t i) {
    Call call;
    call.tid = gettid();
    call.length = 1 + random_() % kLongest;
    char* addr = memory_ + random_() % (kMemory - call.length);
    call.addr = reinterpret_cast<std::uintptr_t>(addr);
    call.access = i % kRefusedEvery == kRefusedEvery - 1
                      ? unsigned{IBV_ACCESS_REMOTE_WRITE}
                      : unsigned{IBV_ACCESS_LOCAL_WRITE} | (random_() % 2 * IBV_ACCESS_REMOTE_READ);
    ibv_mr* mr = ibv_reg_mr(device_.pd.get(), addr, call.length, static_cast<int>(call.access));
    call.error = mr == nullptr ? errno : 0;
    if (mr != nullptr) {
      call.lkey = mr->lkey;
      call.rkey = mr->rkey;
    }
    Made(call);
    if (mr == nullptr) return;
    call.dereg = true;
    call.error = ibv_dereg_mr(mr);
    Made(call);
  }

  void Made(const Call& call) {
    ++made_;
    if (keep_) calls_.push_back(call);
  }

  const Device& device_;
  std::mt19937_64 random_;
  bool keep_;
  char* memory_;
  std::uint64_t made_ = 0;
  std::vector<Call> calls_;
};

void Run(const Options& options) {
  const Device device;
  const std::string& log_path = options.Text("--log");
  const bool keep = log_path != "no";
  const std::uint64_t count = options.Number("--count");
  const std::uint64_t wanted = options.Number("--threads");
  std::vector<Worker> workers;
  for (std::uint64_t i = 0; i < wanted; ++i)
    workers.emplace_back(device, options.Number("--seed") + i, keep);
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < wanted; ++i) {
    // The first ones take what does not divide.
    const std::uint64_t share = count / wanted + (i < count % wanted ? 1 : 0);
    threads.emplace_back([&, i, share] { workers[i].Run(share); });
  }
  for (std::thread& thread : threads) thread.join();

  std::uint64_t made = 0;
  std::ofstream log;
  if (keep) log.open(log_path);
  for (const Worker& worker : workers) {
    made += worker.made();
    for (const Call& call : worker.calls()) log << FormatCall(call);
  }
  log.flush();
  if (!log) Die("cannot write " + log_path);
  std::cout << made << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const Options options(
      {argv, static_cast<std::size_t>(argc)},
      {{"--threads", "8"}, {"--count", "8000"}, {"--seed", "1"}, {"--log", "no"}});
  struct sigaction action {};
  action.sa_handler = [](int) { stop = true; };
  sigaction(SIGTERM, &action, nullptr);
  Run(options);
  return 0;
}
