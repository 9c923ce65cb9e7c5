// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/narrative.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace mrscope {
namespace {

constexpr double kLargeShare = 10;
constexpr std::size_t kAtLeast = 3;

// What a sentence may speak about.
struct Facts {
  const ExplainCase& one;
  const Operation& typical;  // of the operation being described
  const Operation* reg;      // typical registration
  Nanoseconds time;          // p50 of the stage

  std::uint64_t pages() const {
    if (typical.pages) return *typical.pages;
    return reg != nullptr && reg->pages ? *reg->pages : 0;
  }
  // Of the stage's time for each page; empty where pages are not known.
  std::string per_page() const {
    if (pages() == 0) return "";
    return fmt::format(", {} a page", FormatTime(time / static_cast<std::int64_t>(pages())));
  }
};

std::string Count(std::optional<std::uint64_t> number, std::string_view what) {
  return number ? FormatCount(*number, what) : fmt::format("an unknown number of {}s", what);
}

std::string PinSentence(const Facts& facts) {
  const auto faults =
      facts.typical.faults_minor.value_or(0) + facts.typical.faults_major.value_or(0);
  const std::string pages = Count(facts.pages(), "page");
  const std::string cost = facts.per_page();
  if (faults == 0 && !facts.one.touched && facts.one.buffer == "huge2m") {
    // Linux 6.1 does not count the faults of hugetlb pages in a pin.
    return fmt::format(
        "the kernel took huge pages for {} from the pool and zeroed them (this kernel does not "
        "count such faults), then took a long-term reference on each of {}{}; touching the buffer "
        "first moves the zeroing out of ibv_reg_mr()",
        FormatBytes(facts.one.size), pages, cost);
  }
  if (faults == 0) {
    return fmt::format(
        "the kernel walked the page tables and took a long-term reference on each of {} that were "
        "there already{}; no page fault came up{}",
        pages, cost,
        facts.one.buffer == "anon" && facts.pages() > 1
            ? ", and huge pages (thp, huge2m) would need fewer steps"
            : "");
  }
  if (faults * 4 < facts.pages()) {
    return fmt::format(
        "the kernel faulted in and zeroed {} in {} (a huge page takes one), then took a long-term "
        "reference on each of {}{}; touching the buffer first moves the zeroing out of "
        "ibv_reg_mr()",
        FormatBytes(facts.one.size), Count(faults, "fault"), pages, cost);
  }
  return fmt::format(
      "the kernel faulted in and zeroed {} ({} minor and {} major faults), then took a long-term "
      "reference on each{}; touching the buffer first moves that cost out of ibv_reg_mr(){}",
      pages, facts.typical.faults_minor.value_or(0), facts.typical.faults_major.value_or(0), cost,
      facts.one.buffer == "anon" ? ", huge pages need one fault for each 2 MiB" : "");
}

std::string SgSentence(const Facts& facts) {
  return fmt::format(
      "the kernel wrote the pinned pages into a scatter list, joining neighbours: {} became {}{}",
      Count(facts.pages(), "page"), Count(facts.typical.sg_entries, "scatter entry"),
      facts.one.buffer == "anon" ? "; huge pages give far fewer entries" : "");
}

std::string DmaSentence(const Facts& facts) {
  return fmt::format(
      "DMA addresses were made for {}, giving {}: for a software device a plain copy, for real "
      "hardware behind a translating IOMMU one mapping in its tables for each",
      Count(facts.typical.sg_entries, "scatter entry"),
      Count(facts.typical.dma_entries, "DMA entry"));
}

std::string TableSentence(const Facts& facts) {
  return fmt::format(
      "the driver built the table by which the device translates addresses (MTT, PBL), from {} "
      "{}, and on real hardware handed it over with a command{}",
      Count(facts.typical.dma_entries ? facts.typical.dma_entries : facts.typical.sg_entries,
            "entry"),
      facts.typical.page_size ? fmt::format("with a translation page of {}",
                                            FormatBytes(Bytes{*facts.typical.page_size}))
                              : "of the scatter list",
      facts.per_page());
}

std::string LibrarySentence(const Facts& facts) {
  if (facts.typical.stages.MergedGroups().empty() || facts.typical.kernel_total) {
    return "libibverbs and the provider prepared the command in user space; with fork support on, "
           "its madvise() calls and range tree are paid here";
  }
  return "without the kernel's record the whole call is here, and cannot be split";
}

std::string Fixed(std::string_view text) { return std::string(text); }

using Sentence = std::string (*)(const Facts&);

struct StageText {
  RegStage stage;
  Sentence sentence;
};

// One entry a stage: to explain more, write more here.
constexpr StageText kRegTexts[] = {
    {RegStage::kLibrary, LibrarySentence},
    {RegStage::kSyscall,
     [](const Facts&) {
       return Fixed(
           "the ioctl entered the kernel, and ib_uverbs found the method and copied the "
           "command in; a fixed cost for each call");
     }},
    {RegStage::kUverbs,
     [](const Facts&) {
       return Fixed(
           "ib_uverbs parsed the command, allocated the object, looked the PD up and "
           "checked the access flags; a fixed cost for each call");
     }},
    {RegStage::kPrepare,
     [](const Facts&) {
       return Fixed(
           "the driver set up its own MR before it pinned anything; a fixed cost for each "
           "call");
     }},
    {RegStage::kKey,
     [](const Facts&) {
       return Fixed(
           "the driver took a free index for lkey and rkey from its allocator; a fixed "
           "cost for each call");
     }},
    {RegStage::kAccount,
     [](const Facts& facts) {
       return fmt::format(
           "the kernel allocated the umem and counted {} against RLIMIT_MEMLOCK; a "
           "fixed cost for each call",
           Count(facts.pages(), "page"));
     }},
    {RegStage::kPin, PinSentence},
    {RegStage::kSg, SgSentence},
    {RegStage::kDma, DmaSentence},
    {RegStage::kAttach,
     [](const Facts&) {
       return Fixed(
           "the exporter of the dmabuf was attached to and mapped its memory for the "
           "device");
     }},
    {RegStage::kTable, TableSentence},
    {RegStage::kPublish,
     [](const Facts&) {
       return Fixed(
           "the core entered the MR into its resource tracking, copied lkey and rkey to "
           "the caller and made the object valid; a fixed cost for each call");
     }},
    {RegStage::kUnwind,
     [](const Facts&) {
       return Fixed("after the failure the kernel released what it had pinned and mapped");
     }},
    {RegStage::kReturn,
     [](const Facts&) {
       return Fixed("the system call returned, and libibverbs filled struct ibv_mr");
     }},
};

struct DeregText {
  DeregStage stage;
  Sentence sentence;
};

constexpr DeregText kDeregTexts[] = {
    {DeregStage::kLibrary, LibrarySentence},
    {DeregStage::kSyscall,
     [](const Facts&) { return Fixed("the ioctl entered the kernel and found the object"); }},
    {DeregStage::kUverbs,
     [](const Facts&) {
       return Fixed("ib_uverbs locked the object and took it out of its tables");
     }},
    {DeregStage::kInvalidate,
     [](const Facts&) {
       return Fixed(
           "the driver withdrew the key and freed its translation table, on real hardware "
           "with a command that the device has to finish");
     }},
    {DeregStage::kUnmap,
     [](const Facts&) { return Fixed("the device's DMA addresses were taken down"); }},
    {DeregStage::kUnpin,
     [](const Facts& facts) {
       return fmt::format("the kernel marked {} dirty and dropped its reference on each{}",
                          Count(facts.pages(), "page"), facts.per_page());
     }},
    {DeregStage::kFree,
     [](const Facts&) {
       return Fixed("the scatter list, the umem and the driver's MR were freed");
     }},
    {DeregStage::kReturn,
     [](const Facts&) {
       return Fixed(
           "the object was released, the system call returned, and libibverbs freed "
           "struct ibv_mr");
     }},
};

template <typename Text, std::size_t N>
void AddSentences(const Text (&texts)[N], const ExplainCase& one,
                  const std::vector<Operation>& operations, const Operation* reg,
                  std::string_view prefix, std::vector<std::string>& out) {
  const Operation* typical = Typical(operations);
  if (typical == nullptr) return;
  const Summary summary = Summarize(operations);
  for (const std::size_t stage : LargestStages(summary)) {
    for (const Text& text : texts) {
      if (Index(text.stage) != stage) continue;
      const Facts facts{one, *typical, reg, summary.stages[stage]->p50};
      out.push_back(
          fmt::format("{}{}: {}", prefix, typical->stages.names()[stage], text.sentence(facts)));
    }
  }
}

}  // namespace

std::vector<double> Shares(const Summary& summary) {
  Nanoseconds whole{0};
  for (const auto& stage : summary.stages) whole += stage ? stage->p50 : Nanoseconds{0};
  std::vector<double> shares;
  shares.reserve(summary.stages.size());
  for (const auto& stage : summary.stages) {
    shares.push_back(stage && whole.count() > 0 ? 100 * static_cast<double>(stage->p50.count()) /
                                                      static_cast<double>(whole.count())
                                                : 0.0);
  }
  return shares;
}

const Operation* Typical(const std::vector<Operation>& operations) {
  const Summary summary = Summarize(operations);
  if (!summary.total) return nullptr;
  const auto found = std::find_if(operations.begin(), operations.end(), [&](const auto& operation) {
    return !operation.failed() && operation.total == summary.total->p50;
  });
  return found == operations.end() ? nullptr : &*found;
}

std::vector<std::size_t> LargestStages(const Summary& summary) {
  const std::vector<double> shares = Shares(summary);
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
  std::vector<std::size_t> largest;
  for (const std::size_t stage : order) {
    if (shares[stage] <= 0) break;
    if (shares[stage] < kLargeShare && largest.size() >= kAtLeast) break;
    largest.push_back(stage);
  }
  return largest;
}

std::vector<std::string> Narrate(const ExplainCase& one) {
  std::vector<std::string> sentences;
  const Operation* reg = Typical(one.reg);
  AddSentences(kRegTexts, one, one.reg, reg, "", sentences);
  AddSentences(kDeregTexts, one, one.dereg, reg, "deregistration, ", sentences);
  return sentences;
}

}  // namespace mrscope
