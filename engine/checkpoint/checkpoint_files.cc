// Checkpoint files: copying, the rewritten config.json and the index.
#include "engine/checkpoint/checkpoint_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace ember {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kIndexName = "model.safetensors.index.json";

Error io_error(const fs::path& path, const std::string& what) {
  return {ErrorCode::kIo, path.string() + ": " + what};
}

Status write_text(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return io_error(path, "cannot be written");
  return {};
}

Status write_config(const fs::path& from, const fs::path& to, QuantizationNote note) {
  std::ifstream file(from, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Json config = Json::parse(text, nullptr, false);
  if (!file || !config.is_object()) {
    return Error{ErrorCode::kCorruption, from.string() + ": is no JSON object"};
  }
  config.erase("quantization_config");
  if (note != QuantizationNote::kNone) {
    Json fields = {{"activation_scheme", "dynamic"},
                   {"fmt", "e4m3"},
                   {"quant_method", "fp8"},
                   {"weight_block_size", {128, 128}}};
    if (note == QuantizationNote::kFp8PowersOfTwo) fields["scale_fmt"] = "ue8m0";
    config["quantization_config"] = std::move(fields);
  }
  return write_text(to, config.dump(2) + "\n");
}

Status sync_path(const fs::path& path, int flags) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  const bool synced = file >= 0 && ::fsync(file) == 0;
  if (file >= 0) ::close(file);
  if (!synced) return io_error(path, "cannot be made durable");
  return {};
}

}  // namespace

Status copy_checkpoint_files(const std::string& from, const std::string& to,
                             QuantizationNote note) {
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(from, failed)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file(failed) || name.ends_with(".safetensors") || name == kIndexName) {
      continue;
    }
    const fs::path target = fs::path(to) / name;
    if (name == "config.json") {
      EMBER_TRY(write_config(entry.path(), target, note));
    } else if (!fs::copy_file(entry.path(), target, failed)) {
      return io_error(target, "cannot be copied: " + failed.message());
    }
  }
  if (failed) return io_error(from, "cannot be listed: " + failed.message());
  return {};
}

Status write_checkpoint_index(const std::string& to,
                              const std::map<std::string, std::string>& weight_map) {
  Json index = {{"metadata", Json::object()}, {"weight_map", Json::object()}};
  for (const auto& [tensor, file] : weight_map) index["weight_map"][tensor] = file;
  return write_text(fs::path(to) / kIndexName, index.dump(2) + "\n");
}

Status sync_folder(const std::string& folder) {
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    if (entry.is_regular_file()) EMBER_TRY(sync_path(entry.path(), 0));
  }
  if (failed) return io_error(folder, "cannot be listed: " + failed.message());
  return sync_path(folder, O_DIRECTORY);
}

}  // namespace ember
