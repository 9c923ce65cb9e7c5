// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A folder for one test, removed with it.

#ifndef MRSCOPE_TESTS_TEMP_DIR_H_
#define MRSCOPE_TESTS_TEMP_DIR_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace mrscope::test {

class TempDir {
 public:
  TempDir() {
    std::string name = std::filesystem::temp_directory_path() / "mrscope-test-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  void Write(const std::string& file, std::string_view text) const {
    const std::filesystem::path full = std::filesystem::path(path_) / file;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }

 private:
  std::string path_;
};

}  // namespace mrscope::test

#endif  // MRSCOPE_TESTS_TEMP_DIR_H_
