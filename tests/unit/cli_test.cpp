// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Runs the built mr_probe. Only what needs neither a device nor the module.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "mrscope/environment.h"
#include "temp_dir.h"

namespace mrscope {
namespace {

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

std::string Slurp(FILE* file) {
  std::string text;
  std::array<char, 4096> chunk{};
  std::size_t got = 0;
  while ((got = fread(chunk.data(), 1, chunk.size(), file)) > 0) text.append(chunk.data(), got);
  return text;
}

// `before` is what the shell does first.
Outcome MrProbe(const std::string& arguments, const std::string& before = "") {
  const test::TempDir dir;
  const std::string err = dir.path() + "/err";
  const std::string command = before + MR_PROBE + " " + arguments + " 2>" + err;
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  outcome.out = Slurp(pipe);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  FILE* file = fopen(err.c_str(), "r");
  outcome.err = Slurp(file);
  fclose(file);
  return outcome;
}

void ExpectOneSentence(const Outcome& outcome, int exit_code, const std::string& what) {
  EXPECT_EQ(outcome.exit_code, exit_code) << what << ": " << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << what << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("mr_probe: ")) << what << outcome.err;
  EXPECT_EQ(outcome.out, "") << what;
}

TEST(CliTest, UsageErrorsAreOneSentenceAndExitWith2) {
  for (const char* arguments : {"",
                                "explian",
                                "explain --size",
                                "explain --size 0",
                                "explain --size 12Q",
                                "explain --size 999999T",
                                "explain --buffer paper",
                                "explain --access write",
                                "explain --access ''",
                                "explain --count 0",
                                "explain --count x",
                                "explain --nonsense",
                                "explain extra",
                                "explain --memlock x",
                                "explain --unmapped --touched",
                                "explain --level user --keys",
                                "explain --level kernel",
                                "record",
                                "record --",
                                "record ls",
                                "record --level user -- ls",
                                "record --linger -1 -- ls",
                                "record --linger nan -- ls",
                                "record --linger inf -- ls",
                                "record --linger 2e6 -- ls",
                                "record --buffer-size 0 -- ls",
                                "record --buffer-size 1K -- ls",
                                "status extra",
                                "--nonsense"}) {
    ExpectOneSentence(MrProbe(arguments), 2, arguments);
  }
}

TEST(CliTest, TheSentenceNamesWhatWasWrong) {
  EXPECT_NE(MrProbe("explian").err.find("explian"), std::string::npos);
  EXPECT_NE(MrProbe("explain --buffer paper").err.find("anon, thp, huge2m"), std::string::npos);
  EXPECT_NE(MrProbe("explain --size 999999T").err.find("memory"), std::string::npos);
}

TEST(CliTest, HelpAndVersion) {
  for (const char* command : {"", "explain ", "record ", "status "}) {
    const Outcome help = MrProbe(std::string(command) + "--help");
    EXPECT_EQ(help.exit_code, 0) << command;
    EXPECT_NE(help.out.find("Example: mr_probe"), std::string::npos) << command;
    EXPECT_EQ(help.err, "");
  }
  const Outcome version = MrProbe("--version");
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out, "mr_probe " + Version() + "\n");
}

TEST(CliTest, AnUnknownDeviceIsAMissingPrerequisite) {
  ExpectOneSentence(MrProbe("explain --level user --device no_such_device"), 3, "unknown device");
}

TEST(CliTest, WithoutTheModuleTheRemedyIsNamed) {
  if (std::filesystem::exists("/sys/module/mrscope")) GTEST_SKIP() << "mrscope.ko is loaded";
  const Outcome explain = MrProbe("explain --level module");
  ExpectOneSentence(explain, 3, "explain");
  EXPECT_NE(explain.err.find("insmod mrscope.ko"), std::string::npos);
  const Outcome record = MrProbe("record --level module -- true");
  ExpectOneSentence(record, 3, "record");
  EXPECT_NE(record.err.find("insmod mrscope.ko"), std::string::npos);

  const Outcome status = MrProbe("status");
  EXPECT_EQ(status.exit_code, 3);
  EXPECT_NE(status.out.find("remedy: insmod mrscope.ko"), std::string::npos);
  const Outcome json = MrProbe("status --json -");
  EXPECT_EQ(json.exit_code, 3);
  EXPECT_TRUE(json.out.starts_with("{\"schema\": \"mrscope.status/1\"")) << json.out;
}

TEST(CliTest, AnOutputThatCannotBeWrittenIsFoundBeforeTheWork) {
  ExpectOneSentence(MrProbe("status --json /nonexistent/file"), 1, "status");
}

TEST(CliTest, AFailureKeepsTheJsonOfAnEarlierRun) {
  if (std::filesystem::exists("/sys/module/mrscope")) GTEST_SKIP() << "mrscope.ko is loaded";
  const test::TempDir dir;
  dir.Write("old.json", "precious");
  EXPECT_EQ(MrProbe("explain --json " + dir.path() + "/old.json").exit_code, 3);
  EXPECT_EQ(std::filesystem::file_size(dir.path() + "/old.json"), 8U);
}

std::string Read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(CliTest, AFileIsReplacedAsAWhole) {
  const test::TempDir dir;
  const std::string json = dir.path() + "/status.json";
  dir.Write("status.json", "precious");
  std::filesystem::permissions(json, std::filesystem::perms(0640));
  // Too small for the report: what a full disk does, too.
  const Outcome full = MrProbe("status --json " + json, "ulimit -f 1; trap '' XFSZ; ");
  ExpectOneSentence(full, 1, "full");
  EXPECT_EQ(Read(json), "precious");
  MrProbe("status --json " + json);
  EXPECT_TRUE(Read(json).starts_with("{\"schema\"")) << Read(json);
  EXPECT_EQ(std::filesystem::status(json).permissions(), std::filesystem::perms(0640));
  const std::filesystem::directory_iterator files(dir.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "something is left beside it";
}

TEST(CliTest, WhatCannotBeReplacedIsWrittenInPlace) {
  const test::TempDir dir;
  dir.Write("file", "");
  const std::string link = dir.path() + "/link";
  std::filesystem::create_symlink("file", link);
  MrProbe("status --json " + link);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(Read(dir.path() + "/file").starts_with("{\"schema\""));
  EXPECT_NE(MrProbe("status --json /dev/null").out, "");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  ExpectOneSentence(MrProbe("status --json /dev/full"), 1, "/dev/full");
  EXPECT_TRUE(MrProbe("status --json /dev/fd/3", "exec 3>&1; ").out.find("{\"schema\"") !=
              std::string::npos);
}

}  // namespace
}  // namespace mrscope
