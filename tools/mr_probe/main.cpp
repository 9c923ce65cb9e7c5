// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include <algorithm>
#include <csignal>
#include <exception>
#include <iostream>
#include <span>

#include "command.h"
#include "mrscope/environment.h"
#include "mrscope/module.h"

namespace mr_probe {

int Fail(const mrscope::Error& error) {
  switch (error.kind) {
    case mrscope::ErrorKind::kInterrupted:
      signal(error.code, SIG_DFL);
      raise(error.code);
      return kFailed;
    case mrscope::ErrorKind::kFailed:
      std::cerr << "mr_probe: " << error.message << '\n';
      return kFailed;
    case mrscope::ErrorKind::kUsage:
      std::cerr << "mr_probe: " << error.message << '\n';
      return kUsage;
    case mrscope::ErrorKind::kPrerequisite:
      std::cerr << "mr_probe: " << error.message << '\n';
      return kMissing;
  }
  return kFailed;
}

void WarnOfFilters() {
  const auto status = mrscope::Module().ReadStatus();
  if (!status) return;
  std::string settings;
  std::string remedies;
  for (const mrscope::SetFilter& filter : status->SetFilters()) {
    settings += (settings.empty() ? "" : ", ") + filter.setting;
    remedies += (remedies.empty() ? "" : "; ") + filter.remedy;
  }
  if (settings.empty()) return;
  std::cerr << "mr_probe: warning: a filter hides records (" << settings << "): " << remedies
            << '\n';
}

namespace {

// CLI11 complains about the missing subcommand where one is misspelt.
std::string WhatIsWrong(const CLI::ParseError& error, std::span<char*> argv) {
  if (dynamic_cast<const CLI::RequiredError*>(&error) == nullptr) return error.what();
  for (const std::string_view word : argv.subspan(1)) {
    if (!word.starts_with('-')) return "unknown subcommand \"" + std::string(word) + "\"";
  }
  return "no subcommand: use explain, record or status";
}

int Main(std::span<char*> argv) {
  CLI::App app{"Shows where the time of RDMA memory registration goes."};
  app.name("mr_probe");
  app.set_version_flag("--version", "mr_probe " + mrscope::Version());
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 done, 1 what was asked failed, 2 usage, 3 a prerequisite is missing.\n"
      "Example: mr_probe explain --size 64M");

  // The command to record is not ours to parse, whatever it looks like.
  Arguments arguments;
  const auto dashes = std::find_if(argv.begin(), argv.end(),
                                   [](const char* word) { return std::string_view(word) == "--"; });
  if (dashes != argv.end()) arguments.command.assign(dashes + 1, argv.end());

  Run run;
  AddExplain(app, run);
  AddRecord(app, arguments, run);
  AddStatus(app, run);
  try {
    app.parse(static_cast<int>(dashes - argv.begin()), argv.data());
  } catch (const CLI::ParseError& error) {
    // Exit code 0: --help or --version, which CLI11 prints.
    if (error.get_exit_code() == 0) return app.exit(error);
    std::cerr << "mr_probe: " << WhatIsWrong(error, argv) << " (mr_probe --help says more)\n";
    return kUsage;
  }
  return run();
}

}  // namespace
}  // namespace mr_probe

int main(int argc, char** argv) {
  try {
    return mr_probe::Main({argv, static_cast<std::size_t>(argc)});
  } catch (const std::exception& error) {
    std::cerr << "mr_probe: this is a bug: " << error.what() << '\n';
    return mr_probe::kFailed;
  }
}
