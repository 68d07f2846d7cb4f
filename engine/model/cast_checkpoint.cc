// Cast: plans each shard's tensors, then streams them.
#include "engine/model/cast_checkpoint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fp8.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/checkpoint_files.h"
#include "engine/model/weight_convert.h"
#include "kernels/simd.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kScaleSuffix = "_scale_inv";
// The layers that published fp8 checkpoints of the family quantise.
constexpr std::array<std::string_view, 9> kLinear = {
    ".q_proj.weight",    ".q_a_proj.weight", ".q_b_proj.weight",  ".kv_a_proj_with_mqa.weight",
    ".kv_b_proj.weight", ".o_proj.weight",   ".gate_proj.weight", ".up_proj.weight",
    ".down_proj.weight"};

size_t blocks(size_t n) { return (n + kScaleBlock - 1) / kScaleBlock; }

bool is_linear(const std::string& name) {
  return std::any_of(kLinear.begin(), kLinear.end(),
                     [&name](std::string_view suffix) { return name.ends_with(suffix); });
}

// Row by row through `write`, in `dtype`, scales applied.
Status widen_rows(const Weight& from, DType dtype, const TensorToMake::Write& write) {
  std::vector<std::byte> row(from.cols * dtype_bytes(dtype));
  for (size_t r = 0; r < from.rows; ++r) {
    Weight one = from;
    one.data = static_cast<const std::byte*>(from.data) + r * from.cols;
    one.rows = 1;
    if (from.scales != nullptr) one.scales += r / kScaleBlock * blocks(from.cols);
    widen_matrix(one, dtype, row.data());
    EMBER_TRY(write(row));
  }
  return {};
}

// The scales of a matrix that becomes fp8; found once, when first asked for.
class BlockScaleTable {
 public:
  BlockScaleTable(const Weight& from, bool power_of_two)
      : from_(from), power_of_two_(power_of_two) {}

  const std::vector<float>& scales() {
    if (!scales_.empty() || from_.rows * from_.cols == 0) return scales_;
    const size_t across = blocks(from_.cols);
    scales_.assign(blocks(from_.rows) * across, 0.0f);
    std::vector<float> row(from_.cols);
    for (size_t r = 0; r < from_.rows; ++r) {
      widen_row(from_, r, row.data());
      float* largest = scales_.data() + r / kScaleBlock * across;
      for (size_t i = 0; i < from_.cols; ++i) {
        float& most = largest[i / kScaleBlock];
        most = std::max(most, std::abs(row[i]));
      }
    }
    for (float& scale : scales_) {
      scale = scale > 0 ? std::max(scale / kE4m3Largest, kLeastScale) : 1.0f;
      if (power_of_two_) scale = power_of_two_from(scale);
    }
    return scales_;
  }

  Status write_values(const TensorToMake::Write& write) {
    const std::vector<float>& table = scales();
    std::vector<float> row(from_.cols);
    std::vector<std::byte> packed(from_.cols);
    for (size_t r = 0; r < from_.rows; ++r) {
      widen_row(from_, r, row.data());
      const float* scale = table.data() + r / kScaleBlock * blocks(from_.cols);
      for (size_t i = 0; i < from_.cols; ++i) {
        packed[i] = std::byte{to_e4m3(row[i] / scale[i / kScaleBlock])};
      }
      EMBER_TRY(write(packed));
    }
    return {};
  }

 private:
  static constexpr float kLeastScale = 1e-30f;  // a normal number, so that its power of two is one
  Weight from_;
  bool power_of_two_;
  std::vector<float> scales_;
};

class Cast {
 public:
  Cast(const CastOptions& options, std::unique_ptr<Checkpoint> checkpoint)
      : options_(options), checkpoint_(std::move(checkpoint)) {}

  // Everything into `folder`, which exists and is empty.
  Result<CastReport> run(const std::string& folder) {
    const auto shards = checkpoint_->shards();
    std::map<std::string, std::string> weight_map;
    for (const auto& [file, names] : shards) {
      std::vector<TensorToMake> tensors;
      for (const std::string& name : names) EMBER_TRY(plan(name, tensors));
      if (tensors.empty()) continue;  // it held scales alone
      for (const TensorToMake& tensor : tensors) weight_map[tensor.name] = file;
      EMBER_TRY(stream_safetensors((fs::path(folder) / file).string(), tensors));
      ++report_.shards;
      if (options_.progress) {
        options_.progress(static_cast<double>(done_) /
                          static_cast<double>(checkpoint_->total_bytes()));
      }
    }
    if (report_.cast == 0) {
      return Error{
          ErrorCode::kInvalidArgument,
          options_.from + ": nothing to cast, no tensor is " +
              (options_.dtype == DType::kBf16 ? "fp8" : "a linear layer in another dtype")};
    }
    if (checkpoint_->has_index()) EMBER_TRY(write_checkpoint_index(folder, weight_map));
    report_.tensors = weight_map.size();
    EMBER_TRY(copy_checkpoint_files(options_.from, folder, note()));
    return report_;
  }

 private:
  QuantizationNote note() const {
    if (options_.dtype == DType::kBf16) return QuantizationNote::kNone;
    return options_.power_of_two_scales ? QuantizationNote::kFp8PowersOfTwo
                                        : QuantizationNote::kFp8;
  }

  bool is_fp8(const std::string& name) const {
    if (!checkpoint_->has(name)) return false;
    const Result<TensorView> view = checkpoint_->any_tensor(name);
    return view.ok() && view->dtype == DType::kF8E4M3;
  }

  // The tensors of the new shard that `name` becomes: none, one or two.
  Status plan(const std::string& name, std::vector<TensorToMake>& tensors) {
    EMBER_ASSIGN(const TensorView view, checkpoint_->any_tensor(name));
    const bool to_bf16 = options_.dtype == DType::kBf16;
    if (to_bf16 && name.ends_with(kScaleSuffix) &&
        is_fp8(name.substr(0, name.size() - kScaleSuffix.size()))) {
      return {};
    }
    if (to_bf16 && view.dtype == DType::kF8E4M3) return plan_widened(name, view, tensors);
    if (!to_bf16 && view.dtype != DType::kF8E4M3 && view.shape.size() == 2 && is_linear(name)) {
      return plan_packed(name, view, tensors);
    }
    add(tensors,
        {name, view.dtype, view.shape,
         [bytes = view.bytes](const TensorToMake::Write& write) {
           return bytes.empty() ? Status() : write(bytes);
         }},
        view.bytes.size());
    return {};
  }

  Status plan_widened(const std::string& name, const TensorView& view,
                      std::vector<TensorToMake>& tensors) {
    if (view.shape.size() != 2) {
      return Error{ErrorCode::kUnsupported, "tensor " + name + ": an fp8 tensor that is no matrix"};
    }
    const size_t rows = view.shape[0];
    const size_t cols = view.shape[1];
    EMBER_ASSIGN(const TensorView scales, checkpoint_->tensor(name + std::string(kScaleSuffix),
                                                              {blocks(rows), blocks(cols)}));
    auto table = std::make_shared<std::vector<float>>(scales.elements());
    convert_values(scales.bytes.data(), scales.dtype, table->data(), DType::kF32, table->size());
    ++report_.cast;
    add(tensors,
        {name, DType::kBf16, view.shape,
         [table, from = Weight{view.bytes.data(), view.dtype, rows, cols, table->data()}](
             const TensorToMake::Write& write) { return widen_rows(from, DType::kBf16, write); }},
        view.bytes.size() + scales.bytes.size());
    return {};
  }

  Status plan_packed(const std::string& name, const TensorView& view,
                     std::vector<TensorToMake>& tensors) {
    if (view.dtype != DType::kBf16 && view.dtype != DType::kF16 && view.dtype != DType::kF32) {
      return Error{ErrorCode::kUnsupported, "tensor " + name + ": found " +
                                                std::string(dtype_name(view.dtype)) +
                                                ", expected bf16, fp16 or fp32"};
    }
    const size_t rows = view.shape[0];
    const size_t cols = view.shape[1];
    auto table = std::make_shared<BlockScaleTable>(
        Weight{view.bytes.data(), view.dtype, rows, cols, nullptr}, options_.power_of_two_scales);
    ++report_.cast;
    add(tensors,
        {name + std::string(kScaleSuffix),
         DType::kF32,
         {blocks(rows), blocks(cols)},
         [table](const TensorToMake::Write& write) {
           return write(std::as_bytes(std::span(table->scales())));
         }},
        0);
    add(tensors,
        {name, DType::kF8E4M3, view.shape,
         [table](const TensorToMake::Write& write) { return table->write_values(write); }},
        view.bytes.size());
    return {};
  }

  // Adds it with a report of progress at its end.
  void add(std::vector<TensorToMake>& tensors, TensorToMake tensor, size_t source_bytes) {
    tensor.make = [this, source_bytes,
                   make = std::move(tensor.make)](const TensorToMake::Write& write) -> Status {
      EMBER_TRY(make(write));
      done_ += source_bytes;
      if (options_.progress) {
        options_.progress(static_cast<double>(done_) /
                          static_cast<double>(checkpoint_->total_bytes()));
      }
      return {};
    };
    tensors.push_back(std::move(tensor));
  }

  const CastOptions& options_;
  std::unique_ptr<Checkpoint> checkpoint_;
  CastReport report_;
  uint64_t done_ = 0;
};

}  // namespace

Result<CastReport> cast_checkpoint(const CastOptions& options) {
  EMBER_CHECK(options.dtype == DType::kBf16 || options.dtype == DType::kF8E4M3,
              "a cast to bf16 or fp8");
  std::error_code failed;
  std::string to = options.to;
  while (to.size() > 1 && to.back() == '/') to.pop_back();
  if (fs::exists(fs::symlink_status(to, failed))) {
    return Error{ErrorCode::kInvalidArgument, to + ": exists, expected the name of a new folder"};
  }
  EMBER_ASSIGN(std::unique_ptr<Checkpoint> checkpoint, Checkpoint::open(options.from));
  const std::string unfinished = to + ".part";
  fs::remove_all(unfinished, failed);  // of a cast that was stopped
  if (!fs::create_directories(unfinished, failed)) {
    return Error{ErrorCode::kIo, unfinished + ": cannot be made: " + failed.message()};
  }
  Cast cast(options, std::move(checkpoint));
  Result<CastReport> report = cast.run(unfinished);
  if (report.ok()) {
    if (Status synced = sync_folder(unfinished); !synced.ok()) report = synced.error();
  }
  if (report.ok()) {
    fs::rename(unfinished, to, failed);
    if (!failed) return report;
    report = Error{ErrorCode::kIo, to + ": cannot be put in place: " + failed.message()};
  }
  fs::remove_all(unfinished, failed);
  return report;
}

}  // namespace ember
