// Npy: writes a two-dimensional float32 array in NumPy's file format, row block by row block.
//
// Journey    logits -> [npy] -> file
// Owns       the unfinished file, removed unless finish() was called
// Invariant  the final name holds a whole array or does not exist (devices and pipes apart)
// Source     NumPy's NPY format, version 1.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace ember {

class NpyWriter {
 public:
  // Errors: kIo with the path.
  static Result<std::unique_ptr<NpyWriter>> create(const std::string& path, size_t rows,
                                                   size_t cols);
  NpyWriter(const NpyWriter&) = delete;
  NpyWriter& operator=(const NpyWriter&) = delete;
  ~NpyWriter();

  // The next whole rows.
  Status append(std::span<const float> values);
  // After all rows: puts the file in place.
  Status finish();

 private:
  NpyWriter(std::string path, size_t values) : path_(std::move(path)), expected_values_(values) {}
  Error failure(const char* what) const;
  void remove_unfinished() const;

  std::string path_;
  std::string unfinished_;  // where the bytes go until the end
  bool in_place_ = false;   // the path is no regular file: written directly
  std::FILE* file_ = nullptr;
  size_t expected_values_ = 0;
  size_t values_ = 0;
};

}  // namespace ember
