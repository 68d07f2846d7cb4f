// Checkpoint: opens the shards that the index names and hands out their tensors, checked.
#include "engine/checkpoint/checkpoint.h"

#include <filesystem>
#include <set>
#include <utility>

#include "engine/checkpoint/converted_names.h"
#include "engine/checkpoint/fingerprint.h"
#include "engine/checkpoint/json_object.h"
#include "engine/checkpoint/mapped_file.h"
#include "engine/checkpoint/safetensors_mapped.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxIndexBytes = size_t{256} << 20;
// Below this, hashing is quicker than remembering is worth.
constexpr uint64_t kRememberFromBytes = uint64_t{64} << 20;
constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kSingleName = "model.safetensors";
constexpr const char* kConvertedName = "model0-mp1.safetensors";  // of DeepSeek's inference code

bool is_there(const fs::path& path) {
  std::error_code failed;
  return fs::exists(path, failed);
}

bool is_float(DType dtype) {
  return dtype == DType::kBf16 || dtype == DType::kF16 || dtype == DType::kF32 ||
         dtype == DType::kF8E4M3 || dtype == DType::kF8E8M0;
}

Error no_weights(const std::string& folder) {
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("model0-mp") || !name.ends_with(".safetensors")) continue;
    return {ErrorCode::kUnsupported,
            folder + ": " + name + " holds one part of a checkpoint that was converted for several "
                "GPUs, expected " + kConvertedName + " (convert.py --model-parallel 1)"};
  }
  return {ErrorCode::kIo, folder + ": holds no weights, expected " + kSingleName + ", " +
                              kIndexName + " or " + kConvertedName};
}

// A shard is a file of this folder: its name has no directory in it.
bool plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string("/\\\0", 3)) == std::string::npos;
}

class HfCheckpoint final : public Checkpoint {
 public:
  explicit HfCheckpoint(std::string folder) : folder_(std::move(folder)) {}

  Status open_index(const std::string& index_path) {
    EMBER_ASSIGN(const JsonObject index, JsonObject::read_file(index_path, kMaxIndexBytes));
    EMBER_ASSIGN(const JsonObject weight_map, index.object("weight_map"));
    std::map<std::string, const NamedTensors*> shards;
    for (const std::string& name : weight_map.keys()) {
      EMBER_ASSIGN(const std::string file_name, weight_map.text(name));
      if (!plain_file_name(file_name)) {
        return Error{ErrorCode::kInvalidArgument,
                     weight_map.name(name) + ": found " + json_quote(file_name) +
                         ", expected the name of a file in the folder"};
      }
      auto [shard, is_new] = shards.try_emplace(file_name, nullptr);
      if (is_new) {
        EMBER_ASSIGN(shard->second, open_file((fs::path(folder_) / file_name).string()));
      }
      const auto found = shard->second->find(name);
      if (found == shard->second->end()) {
        return Error{ErrorCode::kCorruption, index_path + ": tensor " + name + " is expected in " +
                                                 file_name + ", but that file does not hold it"};
      }
      tensors_.emplace(name, found->second);
      shards_[file_name].push_back(name);
    }
    origin_ = index_path;
    has_index_ = true;
    return {};
  }

  Status open_single(const std::string& path) {
    EMBER_ASSIGN(const NamedTensors* tensors, open_file(path));
    tensors_ = *tensors;
    for (const auto& [name, view] : tensors_) shards_[kSingleName].push_back(name);
    origin_ = path;
    return {};
  }

  Status open_converted(const std::string& path) {
    EMBER_ASSIGN(const NamedTensors* tensors, open_file(path));
    for (const auto& [converted, view] : *tensors) {
      const std::string name = published_name(converted);
      if (!tensors_.emplace(name, view).second) {
        return Error{ErrorCode::kCorruption, path + ": two of its tensors mean " + name};
      }
      shards_[kSingleName].push_back(name);
    }
    origin_ = path;
    return {};
  }

  Result<TensorView> tensor(const std::string& name,
                            const std::vector<size_t>& shape) const override {
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) {
      return Error{
          ErrorCode::kInvalidArgument,
          origin_ + ": tensor " + name + " is missing, expected shape " + shape_text(shape)};
    }
    const TensorView& view = it->second;
    const std::string where = origin_ + ": tensor " + name;
    if (!is_float(view.dtype)) {
      return Error{ErrorCode::kUnsupported,
                   where + ": dtype " + std::string(dtype_name(view.dtype)) +
                       " is not supported, expected bf16, fp16, fp32 or fp8_e4m3"};
    }
    if (view.shape != shape) {
      return Error{ErrorCode::kInvalidArgument, where + ": found shape " + shape_text(view.shape) +
                                                    ", expected " + shape_text(shape)};
    }
    return view;
  }

  bool has(const std::string& name) const override { return tensors_.contains(name); }

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    names.reserve(tensors_.size());
    for (const auto& [name, view] : tensors_) names.push_back(name);
    return names;
  }

  uint64_t total_bytes() const override {
    uint64_t total = 0;
    for (const auto& [name, view] : tensors_) total += view.bytes.size();
    return total;
  }

  std::map<std::string, std::vector<std::string>> shards() const override { return shards_; }
  bool has_index() const override { return has_index_; }

  Result<TensorView> any_tensor(const std::string& name) const override {
    const auto it = tensors_.find(name);
    if (it != tensors_.end()) return it->second;
    return Error{ErrorCode::kInvalidArgument, origin_ + ": tensor " + name + " is missing"};
  }

  Result<BlockHash> fingerprint(const std::function<void(double)>& progress) const override {
    const std::string path =
        total_bytes() < kRememberFromBytes ? std::string() : remembered_path(folder_);
    if (path.empty()) return hash_tensors(tensors_, progress);
    const std::string description = describe_files(files_, tensors_);
    BlockHash digest;
    if (recall_fingerprint(path, description, digest)) return digest;
    digest = hash_tensors(tensors_, progress);
    remember_fingerprint(path, description, digest);
    return digest;
  }

 private:
  Result<const NamedTensors*> open_file(const std::string& path) {
    EMBER_ASSIGN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
    EMBER_ASSIGN(std::unique_ptr<SafetensorsFile> opened, open_safetensors(file));
    files_.push_back(std::move(file));
    parsed_.push_back(std::move(opened));
    return &parsed_.back()->tensors();
  }

  std::string folder_;
  std::string origin_;  // the file that messages name
  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<std::unique_ptr<SafetensorsFile>> parsed_;
  NamedTensors tensors_;
  std::map<std::string, std::vector<std::string>> shards_;
  bool has_index_ = false;
};

}  // namespace

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(const std::string& folder) {
  std::error_code failed;
  if (!fs::is_directory(folder, failed)) {
    return Error{
        ErrorCode::kIo,
        folder + ": no such folder, expected a checkpoint (config.json and " + kSingleName + ")"};
  }
  auto checkpoint = std::make_unique<HfCheckpoint>(folder);
  const fs::path index = fs::path(folder) / kIndexName;
  const fs::path single = fs::path(folder) / kSingleName;
  if (is_there(index)) {
    EMBER_TRY(checkpoint->open_index(index.string()));
  } else if (is_there(single)) {
    EMBER_TRY(checkpoint->open_single(single.string()));
  } else if (is_there(fs::path(folder) / kConvertedName)) {
    EMBER_TRY(checkpoint->open_converted((fs::path(folder) / kConvertedName).string()));
  } else {
    return no_weights(folder);
  }
  return std::unique_ptr<Checkpoint>(std::move(checkpoint));
}

}  // namespace ember
