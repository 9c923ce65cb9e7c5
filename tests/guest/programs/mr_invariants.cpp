// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Checks what holds for every operation of an explain or record report:
//   - stages_ns adds up to total_ns exactly;
//   - a group of merged stages begins with one that took time, the others are
//     unknown, and what lies between did not happen (0) or is unknown too; no
//     stage is in two groups;
//   - what did not fail has neither a failed stage nor any unwinding;
//   - what the caller measured contains what the kernel did;
//   - a thread does one thing at a time;
//   - no record is incomplete, and none was lost.
//
// Usage: mr_invariants FILE
// Prints the number of operations, or what is wrong and exits with 1.

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "json_path.h"

namespace {

class Checker {
 public:
  void CheckOperation(const Json& operation) {
    ++operations_;
    where_ = operation.at("op").get<std::string>() + " seq " + operation.at("seq").dump();
    CheckSum(operation);
    CheckGroups(operation);
    NoteTime(operation);
    Expect(operation.at("incomplete") == false, "is incomplete");
    const Json& kernel = operation.at("kernel_total_ns");
    if (!kernel.is_null()) {
      Expect(kernel.get<std::int64_t>() <= operation.at("total_ns").get<std::int64_t>(),
             "took the kernel longer than the caller");
    }
    if (!operation.contains("failed_stage") || !operation.at("errno").is_null()) return;
    Expect(operation.at("failed_stage").is_null(), "did not fail, but has a failed stage");
    const Json& unwind = operation.at("stages_ns").at("unwind");
    Expect(unwind.is_null() || unwind == 0, "did not fail, but unwound");
  }

  void Expect(bool holds, const std::string& what) {
    if (holds) return;
    std::cout << where_ << ": " << what << '\n';
    ++failures_;
  }

  // Of all operations that were noted: a false clock shows here.
  void CheckOverlaps() {
    for (auto& [tid, spans] : spans_) {
      std::sort(spans.begin(), spans.end());
      where_ = "thread " + tid;
      for (std::size_t i = 1; i < spans.size(); ++i) {
        Expect(spans[i - 1].second <= spans[i].first,
               "begins an operation at " + std::to_string(spans[i].first) +
                   " ns, before the last one ends at " + std::to_string(spans[i - 1].second));
      }
    }
    spans_.clear();
  }

  int Finish() {
    where_ = "the report";
    Expect(operations_ > 0, "has no operation");
    if (failures_ > 0) return 1;
    std::cout << operations_ << '\n';
    return 0;
  }

 private:
  void CheckSum(const Json& operation) {
    std::int64_t sum = 0;
    for (const Json& time : operation.at("stages_ns")) {
      if (time.is_null()) continue;
      Expect(time.get<std::int64_t>() >= 0, "has a negative stage");
      sum += time.get<std::int64_t>();
    }
    const auto total = operation.at("total_ns").get<std::int64_t>();
    Expect(total > 0, "took no time");
    Expect(sum == total,
           "stages add up to " + std::to_string(sum) + ", not to " + std::to_string(total));
  }

  // Nested ones run inside another.
  void NoteTime(const Json& operation) {
    const Json& kernel = operation.at("kernel_total_ns");
    if (operation.at("nested") == true || operation.at("tid").is_null() || kernel.is_null() ||
        operation.at("start_ns").is_null())
      return;
    const auto start = operation.at("start_ns").get<std::int64_t>();
    spans_[operation.at("tid").dump()].emplace_back(start, start + kernel.get<std::int64_t>());
  }

  void CheckGroups(const Json& operation) {
    std::vector<std::string> names;
    std::vector<bool> known;
    std::vector<bool> took_time;
    for (const auto& [name, time] : operation.at("stages_ns").items()) {
      names.push_back(name);
      known.push_back(!time.is_null());
      took_time.push_back(known.back() && time != 0);
    }
    std::set<std::string> seen;
    for (const Json& group : operation.at("merged")) {
      const std::string text = group.dump();
      Expect(group.size() >= 2, "has the group " + text + " of less than two");
      std::size_t before = names.size();
      for (const Json& member : group) {
        const auto name = member.get<std::string>();
        Expect(seen.insert(name).second, name + " is in two groups");
        const auto found = std::find(names.begin(), names.end(), name);
        if (found == names.end()) {
          Expect(false, "has no stage " + name);
          return;
        }
        const auto at = static_cast<std::size_t>(found - names.begin());
        if (before == names.size()) {
          Expect(took_time[at], text + " has no time");
        } else {
          Expect(at > before, text + " is out of order");
          Expect(!known[at], name + " has a time of its own within " + group.dump());
          for (std::size_t i = before + 1; i < at; ++i)
            Expect(!took_time[i], names[i] + " lies between and took time: " + text);
        }
        before = at;
      }
    }
  }

  std::string where_;
  std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>> spans_;
  int operations_ = 0;
  int failures_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: mr_invariants FILE\n";
    return 2;
  }
  try {
    const Json document = ReadJson(argv[1]);
    Checker checker;
    const auto check_both = [&](const Json& holder) {
      for (const char* key : {"reg", "dereg"})
        for (const Json& operation : holder.at(key)) checker.CheckOperation(operation);
      checker.CheckOverlaps();
    };
    if (document.contains("cases")) {
      for (const Json& one : document.at("cases")) check_both(one);
    } else {
      check_both(document);
    }
    checker.Expect(document.at("lost") == 0, "events were lost");
    return checker.Finish();
  } catch (const Json::exception& error) {
    std::cout << argv[1] << ": " << error.what() << '\n';
    return 2;
  }
}
