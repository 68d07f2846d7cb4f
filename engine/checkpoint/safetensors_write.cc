// Safetensors writing: widest dtype first, as the format's own writer, so that tensors are aligned.
#include <algorithm>
#include <cstdio>
#include <fstream>

#include "engine/checkpoint/json_object.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/safetensors_mapped.h"

namespace ember {
namespace {

constexpr size_t kHeaderAlignment = 8;

std::vector<const TensorToWrite*> in_file_order(const std::vector<TensorToWrite>& tensors) {
  std::vector<const TensorToWrite*> order;
  order.reserve(tensors.size());
  for (const TensorToWrite& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const TensorToWrite* a, const TensorToWrite* b) {
    const size_t wide_a = dtype_bytes(a->dtype);
    const size_t wide_b = dtype_bytes(b->dtype);
    return wide_a != wide_b ? wide_a > wide_b : a->name < b->name;
  });
  return order;
}

std::string header_text(const std::vector<const TensorToWrite*>& order) {
  std::string text = R"({"__metadata__":{"format":"pt"})";
  size_t offset = 0;
  for (const TensorToWrite* tensor : order) {
    const size_t end = offset + tensor->bytes.size();
    text += ',';
    text += json_quote(tensor->name);
    text += R"(:{"dtype":")";
    text += safetensors_dtype_name(tensor->dtype);
    text += R"(","shape":)";
    text += shape_text(tensor->shape);
    text += R"(,"data_offsets":[)" + std::to_string(offset) + "," + std::to_string(end) + "]}";
    offset = end;
  }
  text += "}";
  text.resize((text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  return text;
}

}  // namespace

Status write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors) {
  for (const TensorToWrite& tensor : tensors) {
    const size_t expected =
        TensorView{tensor.dtype, tensor.shape, {}}.elements() * dtype_bytes(tensor.dtype);
    EMBER_CHECK(tensor.bytes.size() == expected, "a tensor's bytes do not fit its shape");
  }
  const std::vector<const TensorToWrite*> order = in_file_order(tensors);
  const std::string header = header_text(order);
  const std::string unfinished = path + ".part";
  {
    std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
    const uint64_t length = header.size();
    file.write(reinterpret_cast<const char*>(&length), sizeof length);
    file.write(header.data(), static_cast<std::streamsize>(header.size()));
    for (const TensorToWrite* tensor : order) {
      file.write(reinterpret_cast<const char*>(tensor->bytes.data()),
                 static_cast<std::streamsize>(tensor->bytes.size()));
    }
    file.close();
    if (!file) {
      std::remove(unfinished.c_str());
      return Error{ErrorCode::kIo, unfinished + ": writing failed"};
    }
  }
  if (std::rename(unfinished.c_str(), path.c_str()) != 0) {
    std::remove(unfinished.c_str());
    return Error{ErrorCode::kIo, path + ": cannot be put in place of its unfinished form"};
  }
  return {};
}

}  // namespace ember
