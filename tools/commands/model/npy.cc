// Npy: the ten bytes of magic and length, a padded dictionary, then the values.
#include "tools/commands/model/npy.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/bytes.h"

namespace ember {
namespace {

constexpr size_t kHeaderAlignment = 64;
constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);

std::string header(size_t rows, size_t cols) {
  std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                           std::to_string(rows) + ", " + std::to_string(cols) + "), }";
  const size_t fixed = kMagic.size() + sizeof(uint16_t);
  const size_t whole =
      (fixed + dictionary.size() + 1 + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment;
  dictionary.resize(whole - fixed - 1, ' ');
  dictionary += '\n';
  std::string text(kMagic);
  append_value(text, static_cast<uint16_t>(dictionary.size()));
  return text + dictionary;
}

}  // namespace

Error NpyWriter::failure(const char* what) const {
  return {ErrorCode::kIo, path_ + ": " + what + ": " + std::generic_category().message(errno)};
}

Result<std::unique_ptr<NpyWriter>> NpyWriter::create(const std::string& path, size_t rows,
                                                     size_t cols) {
  std::unique_ptr<NpyWriter> writer(new NpyWriter(path, rows * cols));
  // A device or a pipe is written as it is: renaming a file over it would replace it.
  std::error_code absent;
  const auto kind = std::filesystem::status(path, absent).type();
  writer->in_place_ =
      kind != std::filesystem::file_type::regular && kind != std::filesystem::file_type::not_found;
  writer->unfinished_ =
      writer->in_place_ ? path : path + "." + std::to_string(::getpid()) + ".part";
  writer->file_ = std::fopen(writer->unfinished_.c_str(), "wb");
  if (writer->file_ == nullptr) return writer->failure("cannot be created");
  const std::string text = header(rows, cols);
  if (std::fwrite(text.data(), 1, text.size(), writer->file_) != text.size()) {
    return writer->failure("writing failed");
  }
  return writer;
}

NpyWriter::~NpyWriter() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  remove_unfinished();
}

void NpyWriter::remove_unfinished() const {
  if (!in_place_) std::remove(unfinished_.c_str());
}

Status NpyWriter::append(std::span<const float> values) {
  EMBER_CHECK(values_ + values.size() <= expected_values_, "more rows than the header says");
  if (std::fwrite(values.data(), sizeof(float), values.size(), file_) != values.size()) {
    return failure("writing failed");
  }
  values_ += values.size();
  return {};
}

Status NpyWriter::finish() {
  EMBER_CHECK(values_ == expected_values_, "fewer rows than the header says");
  std::FILE* file = std::exchange(file_, nullptr);
  if (std::fclose(file) != 0) {
    const Error error = failure("writing failed");
    remove_unfinished();
    return error;
  }
  if (in_place_) return {};
  if (std::rename(unfinished_.c_str(), path_.c_str()) != 0) {
    const Error error = failure("cannot be put in place");
    remove_unfinished();
    return error;
  }
  return {};
}

}  // namespace ember
