// Safetensors: one checkpoint file, mapped into memory; its header read with distrust.
//
// Journey    file -> [safetensors] -> checkpoint
// Owns       the mapping
// Invariant  every tensor lies inside the file; entries do not overlap and leave no hole
// Source     the safetensors format (Hugging Face), as in docs/formats of that project
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/result.h"

namespace ember {

struct TensorView {
  DType dtype = DType::kBf16;
  std::vector<size_t> shape;
  ConstBytes bytes;  // row-major, little-endian, not necessarily aligned
  size_t elements() const;
};

class SafetensorsFile {
 public:
  // Errors: kIo (absent, unreadable), kCorruption (cut, header out of bounds), kUnsupported
  // (dtype); each names the file, the tensor, what was found and what was expected.
  static Result<std::unique_ptr<SafetensorsFile>> open(const std::string& path);
  virtual ~SafetensorsFile() = default;
  virtual const std::map<std::string, TensorView>& tensors() const = 0;
  virtual const std::string& path() const = 0;
};

// Writes a file that open() reads back: for tools and tests that make small models.
struct TensorToWrite {
  std::string name;
  DType dtype = DType::kBf16;
  std::vector<size_t> shape;
  ConstBytes bytes;
};
Status write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors);

// The same for tensors that are made while they are written: `make` hands its bytes, row-major and
// in order, to `write` in pieces of any size. Errors: kIo; those of `make`.
struct TensorToMake {
  using Write = std::function<Status(ConstBytes)>;
  std::string name;
  DType dtype = DType::kBf16;
  std::vector<size_t> shape;
  std::function<Status(const Write&)> make;
};
Status stream_safetensors(const std::string& path, const std::vector<TensorToMake>& tensors);

}  // namespace ember
