// Safetensors: the header is read field by field, bounded by the file before anything is trusted.
#include "engine/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "engine/checkpoint/json_object.h"
#include "engine/checkpoint/safetensors_mapped.h"

namespace ember {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own bound

constexpr std::array<std::pair<std::string_view, DType>, 9> kDtypes = {{
    {"F32", DType::kF32},
    {"BF16", DType::kBf16},
    {"F16", DType::kF16},
    {"F8_E4M3", DType::kF8E4M3},
    {"I32", DType::kI32},
    {"I64", DType::kI64},
    {"U8", DType::kU8},
    {"I8", DType::kI8},
    {"F8_E8M0", DType::kF8E8M0},
}};

std::optional<DType> dtype_of(std::string_view name) {
  for (const auto& [known, dtype] : kDtypes) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

Error corruption(const std::string& where, const std::string& what) {
  return {ErrorCode::kCorruption, where + ": " + what};
}

// The bytes that `shape` needs, or nothing where the product overflows.
std::optional<uint64_t> bytes_of(const std::vector<uint64_t>& shape, DType dtype) {
  uint64_t bytes = dtype_bytes(dtype);
  for (const uint64_t extent : shape) {
    if (extent != 0 && bytes > std::numeric_limits<uint64_t>::max() / extent) return std::nullopt;
    bytes *= extent;
  }
  return bytes;
}

struct Span {
  uint64_t begin = 0;
  uint64_t end = 0;
  const std::string* name = nullptr;
};

class File final : public SafetensorsFile {
 public:
  explicit File(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {}

  const std::map<std::string, TensorView>& tensors() const override { return tensors_; }
  const std::string& path() const override { return file_->path(); }

  Status read_header() {
    const ConstBytes bytes = file_->bytes();
    if (bytes.size() < kLengthBytes) {
      return corruption(path(), "the file is cut: found " + std::to_string(bytes.size()) +
                                    " bytes, expected at least 8 for the header's length");
    }
    const auto length = load_unaligned<uint64_t>(bytes.data());
    const uint64_t most = std::min<uint64_t>(kMaxHeaderBytes, bytes.size() - kLengthBytes);
    if (length < 2 || length > most) {
      return corruption(path(), "header length is " + std::to_string(length) + ", expected 2 to " +
                                    std::to_string(most) +
                                    " (the file is cut or is no safetensors file)");
    }
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
    if (text.front() != '{') return corruption(path(), "the header does not begin with '{'");
    EMBER_ASSIGN(const JsonObject header, JsonObject::parse(text, path() + " (header)"));
    data_ = bytes.subspan(kLengthBytes + length);
    for (const std::string& name : header.keys()) {
      if (name != "__metadata__") EMBER_TRY(read_entry(header, name));
    }
    return check_packing();
  }

 private:
  std::string tensor_name(const std::string& name) const { return path() + ": tensor " + name; }

  Status read_entry(const JsonObject& header, const std::string& name) {
    EMBER_ASSIGN(const JsonObject entry, header.object(name));
    EMBER_ASSIGN(const std::string dtype_text, entry.text("dtype"));
    EMBER_ASSIGN(const std::vector<uint64_t> shape, entry.whole_list("shape"));
    EMBER_ASSIGN(const std::vector<uint64_t> offsets, entry.whole_list("data_offsets"));
    const std::optional<DType> dtype = dtype_of(dtype_text);
    if (!dtype) {
      return Error{ErrorCode::kUnsupported, tensor_name(name) + ": dtype " + dtype_text +
                                                " is not supported, expected BF16, F16 or F32"};
    }
    if (offsets.size() != 2 || offsets[0] > offsets[1]) {
      return corruption(tensor_name(name), "data_offsets is not [begin, end] with begin <= end");
    }
    if (offsets[1] > data_.size()) {
      return corruption(tensor_name(name), "its bytes end at " + std::to_string(offsets[1]) +
                                               " of the data, but the file holds " +
                                               std::to_string(data_.size()) + ": it is cut");
    }
    TensorView view;
    view.dtype = *dtype;
    view.shape.assign(shape.begin(), shape.end());
    const std::optional<uint64_t> expected = bytes_of(shape, *dtype);
    const uint64_t found = offsets[1] - offsets[0];
    if (!expected || *expected != found) {
      return corruption(tensor_name(name),
                        "found " + std::to_string(found) + " bytes, expected " +
                            (expected ? std::to_string(*expected) : "more than 2^64") + " for " +
                            shape_text(view.shape) + " of " + dtype_text);
    }
    view.bytes = data_.subspan(offsets[0], found);
    tensors_.emplace(name, std::move(view));
    return {};
  }

  // No holes, no overlaps, nothing behind the last tensor.
  Status check_packing() const {
    std::vector<Span> spans;
    spans.reserve(tensors_.size());
    for (const auto& [name, view] : tensors_) {
      const auto begin = static_cast<uint64_t>(view.bytes.data() - data_.data());
      spans.push_back({begin, begin + view.bytes.size(), &name});
    }
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    uint64_t end = 0;
    for (const Span& span : spans) {
      if (span.begin != end) {
        return corruption(tensor_name(*span.name), "its bytes begin at " +
                                                       std::to_string(span.begin) + ", expected " +
                                                       std::to_string(end) + " (overlap or hole)");
      }
      end = span.end;
    }
    if (end != data_.size()) {
      return corruption(path(), "found " + std::to_string(data_.size()) +
                                    " bytes of data, expected " + std::to_string(end) +
                                    " by its header");
    }
    return {};
  }

  std::shared_ptr<const MappedFile> file_;
  ConstBytes data_;
  std::map<std::string, TensorView> tensors_;
};

}  // namespace

size_t TensorView::elements() const {
  size_t count = 1;
  for (const size_t extent : shape) count *= extent;
  return count;
}

std::string_view safetensors_dtype_name(DType dtype) {
  for (const auto& [name, known] : kDtypes) {
    if (known == dtype) return name;
  }
  return "unknown";
}

std::string shape_text(const std::vector<size_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

Result<std::unique_ptr<SafetensorsFile>> open_safetensors(std::shared_ptr<const MappedFile> file) {
  auto opened = std::make_unique<File>(std::move(file));
  EMBER_TRY(opened->read_header());
  return std::unique_ptr<SafetensorsFile>(std::move(opened));
}

Result<std::unique_ptr<SafetensorsFile>> SafetensorsFile::open(const std::string& path) {
  EMBER_ASSIGN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  return open_safetensors(std::move(file));
}

}  // namespace ember
