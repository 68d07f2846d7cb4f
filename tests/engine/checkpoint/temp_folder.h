// Temp folder: a directory of one test, removed with everything in it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ember::testing {

class TempFolder {
 public:
  TempFolder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            ("ember-" + std::string(test->test_suite_name()) + "-" + test->name() + "-" +
             std::to_string(::getpid()) + "-" + std::to_string(made_++));
    std::filesystem::create_directories(path_);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code failed;
    std::filesystem::remove_all(path_, failed);
  }
  std::string path() const { return path_.string(); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  static inline int made_ = 0;
  std::filesystem::path path_;
};

// A new file each time: rewriting one in place makes some file systems flush it at once.
inline void write_file(const std::string& path, const std::string& bytes) {
  std::error_code failed;
  std::filesystem::remove(path, failed);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace ember::testing
