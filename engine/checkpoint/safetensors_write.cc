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

size_t tensor_bytes(const TensorToMake& tensor) {
  return TensorView{tensor.dtype, tensor.shape, {}}.elements() * dtype_bytes(tensor.dtype);
}

std::vector<const TensorToMake*> in_file_order(const std::vector<TensorToMake>& tensors) {
  std::vector<const TensorToMake*> order;
  order.reserve(tensors.size());
  for (const TensorToMake& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const TensorToMake* a, const TensorToMake* b) {
    const size_t wide_a = dtype_bytes(a->dtype);
    const size_t wide_b = dtype_bytes(b->dtype);
    return wide_a != wide_b ? wide_a > wide_b : a->name < b->name;
  });
  return order;
}

std::string header_text(const std::vector<const TensorToMake*>& order) {
  std::string text = R"({"__metadata__":{"format":"pt"})";
  size_t offset = 0;
  for (const TensorToMake* tensor : order) {
    const size_t end = offset + tensor_bytes(*tensor);
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

Status write_all(std::ofstream& file, const std::vector<const TensorToMake*>& order) {
  const std::string header = header_text(order);
  const uint64_t length = header.size();
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  for (const TensorToMake* tensor : order) {
    size_t written = 0;
    const TensorToMake::Write write = [&](ConstBytes bytes) -> Status {
      file.write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
      written += bytes.size();
      if (!file) return Error{ErrorCode::kIo, "writing failed"};
      return {};
    };
    EMBER_TRY(tensor->make(write));
    EMBER_CHECK(written == tensor_bytes(*tensor), "a tensor's bytes do not fit its shape");
  }
  file.close();
  if (!file) return Error{ErrorCode::kIo, "writing failed"};
  return {};
}

}  // namespace

Status stream_safetensors(const std::string& path, const std::vector<TensorToMake>& tensors) {
  const std::string unfinished = path + ".part";
  Status written;
  {
    std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
    written = write_all(file, in_file_order(tensors));
  }
  if (written.ok() && std::rename(unfinished.c_str(), path.c_str()) == 0) return {};
  std::remove(unfinished.c_str());
  if (written.ok()) {
    return Error{ErrorCode::kIo, path + ": cannot be put in place of its unfinished form"};
  }
  return Error{written.error().code, unfinished + ": " + written.error().message};
}

Status write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors) {
  std::vector<TensorToMake> made;
  made.reserve(tensors.size());
  for (const TensorToWrite& tensor : tensors) {
    made.push_back({tensor.name, tensor.dtype, tensor.shape,
                    [bytes = tensor.bytes](const TensorToMake::Write& write) {
                      return bytes.empty() ? Status() : write(bytes);
                    }});
  }
  return stream_safetensors(path, made);
}

}  // namespace ember
