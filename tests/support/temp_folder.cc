// Makes and removes the folders of tests.
#include "tests/support/temp_folder.h"

#include <cstdlib>
#include <filesystem>

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

}  // namespace ember
