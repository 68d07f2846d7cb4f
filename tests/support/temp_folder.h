// Temporary folder: a place for a test's files that goes with the test; whole files at once.
#pragma once

#include <string>
#include <string_view>

namespace ember {

class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file in it and returns its path.
  std::string write(const std::string& name, std::string_view bytes) const;

 private:
  std::string path_;
};

void write_file(const std::string& path, std::string_view bytes);
std::string read_file(const std::string& path);

}  // namespace ember
