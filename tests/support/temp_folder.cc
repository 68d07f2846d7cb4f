// Makes and removes the folders of tests.
#include "tests/support/temp_folder.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/check.h"

namespace ember {

TempFolder::TempFolder() {
  path_ = (std::filesystem::temp_directory_path() / "emberkv-test-XXXXXX").string();
  EMBER_CHECK(mkdtemp(path_.data()) != nullptr, "no temporary folder");
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempFolder::write(const std::string& name, std::string_view bytes) const {
  write_file(*this / name, bytes);
  return *this / name;
}

// A new file each time: rewriting one in place makes some file systems flush it at once.
void write_file(const std::string& path, std::string_view bytes) {
  std::error_code absent;
  std::filesystem::remove(path, absent);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace ember
