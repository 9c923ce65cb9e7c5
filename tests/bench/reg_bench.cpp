// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Registers and deregisters one touched, locked buffer again and again, and
// prints how long that took: one line, to be read by tests/bench/run.
//
//   reg_bench [--device NAME] [--size BYTES] [--warmup N] [--count N] [--output FILE]
//
// Uses libibverbs alone: what it measures must not depend on what is tested.

#include <getopt.h>
#include <infiniband/verbs.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Options {
  std::string device = "rxe0";
  std::string output;
  std::size_t size = 4096;
  std::size_t warmup = 200;
  std::size_t count = 1000;
};

// What a C library gave, with the function that takes it back.
template <typename T, auto Release>
struct Releaser {
  void operator()(T* object) const { Release(object); }
};
template <typename T, auto Release>
using Owned = std::unique_ptr<T, Releaser<T, Release>>;

using Context = Owned<ibv_context, ibv_close_device>;
using Pd = Owned<ibv_pd, ibv_dealloc_pd>;

[[noreturn]] void Fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

Context OpenDevice(const std::string& name) {
  int count = 0;
  const Owned<ibv_device*, ibv_free_device_list> list(ibv_get_device_list(&count));
  if (!list) Fail("no list of devices");
  for (ibv_device* device : std::span(list.get(), static_cast<std::size_t>(count))) {
    if (name != ibv_get_device_name(device)) continue;
    Context context(ibv_open_device(device));
    if (!context) Fail("cannot open " + name);
    return context;
  }
  throw std::runtime_error("no device " + name);
}

// Present and locked: no page fault is left for the registration.
class Buffer {
 public:
  explicit Buffer(std::size_t size)
      : size_(size),
        start_(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (start_ == MAP_FAILED) Fail("no memory");
    std::memset(start_, 1, size_);
    if (mlock(start_, size_) != 0) Fail("cannot lock the buffer");
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { munmap(start_, size_); }

  void* start() const { return start_; }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  void* start_;
};

std::int64_t Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

struct Times {
  std::vector<std::int64_t> reg;
  std::vector<std::int64_t> dereg;
};

Times Measure(ibv_pd* pd, const Buffer& buffer, std::size_t count) {
  Times times;
  times.reg.reserve(count);
  times.dereg.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t begun = Now();
    ibv_mr* mr = ibv_reg_mr(pd, buffer.start(), buffer.size(), kAccess);
    const std::int64_t registered = Now();
    if (mr == nullptr) Fail("ibv_reg_mr");
    const std::int64_t again = Now();
    const int error = ibv_dereg_mr(mr);
    const std::int64_t done = Now();
    if (error != 0) {
      errno = error;
      Fail("ibv_dereg_mr");
    }
    times.reg.push_back(registered - begun);
    times.dereg.push_back(done - again);
  }
  return times;
}

void Print(std::FILE* out, const char* name, std::vector<std::int64_t> times) {
  std::ranges::sort(times);
  const auto at = [&](double share) {
    return static_cast<long long>(
        times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))]);
  };
  std::fprintf(out, "%s_min %lld %s_p50 %lld %s_p99 %lld ", name, at(0), name, at(0.5), name,
               at(0.99));
}

std::size_t ParseNumber(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0) {
    throw UsageError("not a number above 0: " + std::string(text));
  }
  return value;
}

Options Parse(int argc, char** argv) {
  static constexpr option kLong[] = {
      {"device", required_argument, nullptr, 'd'}, {"size", required_argument, nullptr, 's'},
      {"warmup", required_argument, nullptr, 'w'}, {"count", required_argument, nullptr, 'n'},
      {"output", required_argument, nullptr, 'o'}, {nullptr, 0, nullptr, 0}};
  Options options;
  int found = 0;
  while ((found = getopt_long(argc, argv, "d:s:w:n:o:", kLong, nullptr)) != -1) {
    switch (found) {
      case 'd':
        options.device = optarg;
        break;
      case 's':
        options.size = ParseNumber(optarg);
        break;
      case 'w':
        options.warmup = ParseNumber(optarg);
        break;
      case 'n':
        options.count = ParseNumber(optarg);
        break;
      case 'o':
        options.output = optarg;
        break;
      default:
        throw UsageError("see the head of tests/bench/reg_bench.cpp");
    }
  }
  if (optind != argc) throw UsageError("unexpected " + std::string(argv[optind]));
  return options;
}

void Run(const Options& options) {
  const Context context = OpenDevice(options.device);
  const Pd pd(ibv_alloc_pd(context.get()));
  if (!pd) Fail("no protection domain");
  const Buffer buffer(options.size);

  Measure(pd.get(), buffer, options.warmup);
  const Times times = Measure(pd.get(), buffer, options.count);

  const Owned<std::FILE, std::fclose> file(
      options.output.empty() ? nullptr : std::fopen(options.output.c_str(), "we"));
  if (!options.output.empty() && !file) Fail("cannot write " + options.output);
  std::FILE* out = file ? file.get() : stdout;
  Print(out, "reg", times.reg);
  Print(out, "dereg", times.dereg);
  std::fprintf(out, "count %zu\n", options.count);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Run(Parse(argc, argv));
    return 0;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "reg_bench: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reg_bench: %s\n", error.what());
    return 1;
  }
}
