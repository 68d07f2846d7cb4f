// Quantised models: fp8 checkpoints and int8 at load, against the plain reference over seeds, and
// checkpoints whose scales are not as they should be.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/fp8.h"
#include "engine/model/cast_checkpoint.h"
#include "engine/model/identity.h"
#include "engine/model/reference_forward.h"
#include "tests/engine/model/model_harness.h"
#include "tests/engine/model/random_models.h"
#include "tests/support/temp_folder.h"
#include "tools/make_random_model.h"

namespace ember::testing {
namespace {

constexpr AttentionForm kForms[] = {AttentionForm::kAbsorb, AttentionForm::kNaive};
constexpr uint64_t kSeeds[] = {0, 3, 4, 5, 7};

class QuantizedModelTest : public ::testing::Test {
 protected:
  // A random model as bf16, and its fp8 form (scales raw or powers of two by seed).
  std::string bf16_model(uint64_t seed) {
    const std::string folder = folder_ / ("bf16-" + std::to_string(seed));
    EXPECT_TRUE(make_random_model(random_model_config(seed), seed, DType::kBf16, folder).ok());
    return folder;
  }
  std::string fp8_model(uint64_t seed) {
    const std::string folder = folder_ / ("fp8-" + std::to_string(seed));
    const auto report =
        cast_checkpoint({bf16_model(seed), folder, DType::kF8E4M3, seed % 2 == 0, {}});
    EXPECT_TRUE(report.ok()) << report.error().message;
    return folder;
  }
  // The checkpoint's tensors, to be changed and written back.
  void take(const std::string& folder) {
    path_ = folder + "/model.safetensors";
    const auto file = std::move(SafetensorsFile::open(path_)).value();
    for (const auto& [name, view] : file->tensors()) {
      bytes_[name].assign(view.bytes.begin(), view.bytes.end());
      tensors_[name] = {name, view.dtype, view.shape, bytes_[name]};
    }
  }
  void set(const std::string& name, DType dtype, std::vector<std::byte> bytes) {
    bytes_[name] = std::move(bytes);
    tensors_.at(name).dtype = dtype;
    tensors_.at(name).bytes = bytes_[name];
  }
  Result<std::unique_ptr<ModelWeights>> load(const std::string& folder,
                                             WeightForm form = WeightForm::kStored) {
    if (!tensors_.empty()) {
      std::vector<TensorToWrite> list;
      for (const auto& [name, tensor] : tensors_) list.push_back(tensor);
      EXPECT_TRUE(write_safetensors(path_, list).ok());
    }
    auto checkpoint = std::move(Checkpoint::open(folder)).value();
    const ModelConfig config = std::move(load_model_config(folder)).value();
    return load_weights(std::move(checkpoint), config, DType::kBf16, *device_, {}, form);
  }
  void expect_refused(const std::string& folder, const std::string& part,
                      WeightForm form = WeightForm::kStored) {
    const auto weights = load(folder, form);
    ASSERT_FALSE(weights.ok());
    EXPECT_NE(weights.error().message.find(part), std::string::npos) << weights.error().message;
  }

  TempFolder folder_;
  std::string path_;
  std::map<std::string, std::vector<std::byte>> bytes_;
  std::map<std::string, TensorToWrite> tensors_;
  std::unique_ptr<Device> device_ = make_sim_device(1);
};

const std::string kWeight = "model.layers.4.self_attn.o_proj.weight";  // [136, 280] in seed 5
const std::string kScales = kWeight + "_scale_inv";

TEST_F(QuantizedModelTest, Fp32AgreesWithThePlainReference) {
  for (const uint64_t seed : kSeeds) {
    const std::string fp8 = fp8_model(seed);
    const std::string half = folder_ / ("bf16-" + std::to_string(seed));
    for (const WeightForm form : {WeightForm::kStored, WeightForm::kInt8}) {
      const std::string& folder = form == WeightForm::kStored ? fp8 : half;
      for (const AttentionForm attention : kForms) {
        ModelHarness fast(folder, DType::kF32, attention, {.weights = form});
        const uint32_t vocab = fast.config().vocab_size;
        const Tokens tokens = random_tokens(seed, 70, vocab);
        const ReferenceOutput plain = reference_forward(fast.weights(), tokens, attention);
        EXPECT_LE(worst_row_error(fast.run(tokens, 33).logits, plain.logits, vocab), 2e-5)
            << "seed " << seed;
      }
    }
  }
}

TEST_F(QuantizedModelTest, ChunksAndWorkersDoNotChangeABit) {
  const std::string folder = fp8_model(5);
  for (const WeightForm form : {WeightForm::kStored, WeightForm::kInt8}) {
    ModelHarness one(folder, DType::kBf16, AttentionForm::kAbsorb, {.workers = 1, .weights = form});
    ModelHarness two(folder, DType::kBf16, AttentionForm::kAbsorb, {.workers = 2, .weights = form});
    const Tokens tokens = random_tokens(1, 90, one.config().vocab_size);
    const ModelRun whole = one.run(tokens, 0);
    for (const size_t chunk : {size_t{1}, size_t{7}, size_t{64}}) {
      EXPECT_EQ(two.run(tokens, chunk), whole) << "chunk " << chunk;
    }
  }
}

// Matrices of a cast are the same values with one rounding to bf16, or none with powers of two.
TEST_F(QuantizedModelTest, APowerOfTwoCastGivesTheSameBits) {
  const std::string fp8 = fp8_model(4);
  const std::string back = folder_ / "back";
  ASSERT_TRUE(cast_checkpoint({fp8, back, DType::kBf16, false, {}}).ok());
  for (const AttentionForm form : kForms) {
    ModelHarness packed(fp8, DType::kF32, form);
    ModelHarness wide(back, DType::kF32, form);
    const Tokens tokens = random_tokens(9, 60, packed.config().vocab_size);
    EXPECT_EQ(packed.run(tokens, 0), wide.run(tokens, 0));
  }
}

TEST_F(QuantizedModelTest, Fp8StaysFp8AndIsUsedAsMapped) {
  const std::string folder = fp8_model(5);
  const auto weights = std::move(load(folder)).value();
  const LayerWeights& layer = weights->layers[4];
  EXPECT_EQ(layer.o.dtype, DType::kF8E4M3);
  EXPECT_EQ(layer.expert_dtype, DType::kF8E4M3);
  EXPECT_EQ(layer.kv_b.dtype, DType::kBf16);
  EXPECT_EQ(layer.key_absorb.dtype, DType::kBf16);
  const TensorView view = weights->checkpoint->any_tensor(kWeight).value();
  EXPECT_EQ(layer.o.data, static_cast<const void*>(view.bytes.data()));
  // kv_b and its transposed key part in each layer: no other copies.
  EXPECT_EQ(weights->owned.size(), size_t{2} * weights->config.layers);
}

TEST_F(QuantizedModelTest, ScalesMayBePowersOfTwoInABitOrInBf16) {
  const std::string folder = fp8_model(4);
  const std::string name = "model.layers.1.mlp.gate_proj.weight_scale_inv";
  const auto before = std::move(load(folder)).value();
  const Weight& gate = before->layers[1].gate;
  const size_t count = 3 * 2;  // [264, 136]
  take(folder);
  std::vector<std::byte> exponents, halves(count * 2);
  for (size_t i = 0; i < count; ++i) {
    exponents.push_back(static_cast<std::byte>(std::ilogb(gate.scales[i]) + 127));
    const bf16 half = to_bf16(gate.scales[i]);
    std::memcpy(halves.data() + 2 * i, &half, 2);
  }
  for (const bool packed : {true, false}) {
    set(name, packed ? DType::kF8E8M0 : DType::kBf16, packed ? exponents : halves);
    const auto after = std::move(load(folder)).value();
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(after->layers[1].gate.scales[i], gate.scales[i]);
    }
  }
}

TEST_F(QuantizedModelTest, ExpertsOfSeveralDtypesMeetInOne) {
  const std::string folder = fp8_model(5);
  take(folder);
  const std::string name = "model.layers.4.mlp.experts.2.up_proj.weight";
  set(name, DType::kBf16, std::vector<std::byte>(bytes_[name].size() * 2));
  tensors_.erase(name + "_scale_inv");
  const auto weights = std::move(load(folder)).value();
  EXPECT_EQ(weights->layers[4].expert_dtype, DType::kBf16);
}

TEST_F(QuantizedModelTest, WrongScalesAreNamed) {
  const std::string folder = fp8_model(5);
  take(folder);
  const TensorToWrite kept = tensors_.at(kScales);
  tensors_.erase(kScales);
  expect_refused(folder, kScales + " is missing");
  tensors_[kScales] = kept;
  std::swap(tensors_.at(kScales).shape[0], tensors_.at(kScales).shape[1]);
  expect_refused(folder, kScales + ": found shape [3, 2], expected [2, 3]");
  tensors_[kScales] = kept;
  const std::string norm = "model.layers.4.input_layernorm.weight";
  set(norm, DType::kF8E4M3, std::vector<std::byte>(bytes_[norm].size() / 2));
  expect_refused(folder, norm + ": found fp8_e4m3");
}

TEST_F(QuantizedModelTest, ModelsOfAnotherPassAreRefusedByName) {
  const std::string folder = bf16_model(5);
  take(folder);
  const auto add = [&](const std::string& name) {
    bytes_[name].resize(4);
    tensors_[name] = {name, DType::kF32, {1}, bytes_[name]};
  };
  add("model.layers.4.self_attn.indexer.wk.weight");
  expect_refused(folder, "indexer of DeepSeek-V3.2");
  tensors_.erase("model.layers.4.self_attn.indexer.wk.weight");
  add("model.layers.4.mlp.experts.0.up_proj.weight_packed");
  tensors_.erase("model.layers.4.mlp.experts.0.up_proj.weight");
  expect_refused(folder, "packed int4");
}

// The documented bound: half a step, a step being the row's largest size over 127.
TEST_F(QuantizedModelTest, Int8IsOffByAtMostHalfAStep) {
  const std::string folder = fp8_model(5);
  const auto wide = std::move(load(folder)).value();
  const auto narrow = std::move(load(folder, WeightForm::kInt8)).value();
  const Weight& from = wide->layers[4].o;
  const Weight& to = narrow->layers[4].o;
  ASSERT_EQ(to.dtype, DType::kI8);
  std::vector<float> a(from.cols), b(from.cols);
  for (size_t r = 0; r < from.rows; ++r) {
    widen_row(from, r, a.data());
    widen_row(to, r, b.data());
    float most = 0;
    for (const float value : a) most = std::max(most, std::abs(value));
    EXPECT_FLOAT_EQ(to.scales[r], most / 127);
    for (size_t i = 0; i < from.cols; ++i) {
      ASSERT_LE(std::abs(a[i] - b[i]), to.scales[r] * 0.50001f);
    }
  }
  EXPECT_EQ(narrow->embedding.dtype, DType::kBf16);
  EXPECT_EQ(narrow->head.dtype, DType::kBf16);
  EXPECT_EQ(narrow->layers[4].kv_b.dtype, DType::kBf16);
}

TEST_F(QuantizedModelTest, Int8StaysNearTheModelAndIsAnotherNamespace) {
  const std::string folder = bf16_model(5);
  ModelHarness stored(folder, DType::kF32, AttentionForm::kAbsorb);
  ModelHarness packed(folder, DType::kF32, AttentionForm::kAbsorb, {.weights = WeightForm::kInt8});
  const uint32_t vocab = stored.config().vocab_size;
  const Tokens tokens = random_tokens(2, 80, vocab);
  EXPECT_LE(median_row_error(packed.run(tokens, 0).logits, stored.run(tokens, 0).logits, vocab),
            0.1);
  const ModelConfig& config = stored.config();
  const KvLayout layout = model_kv_layout(config, DType::kBf16, 64, 0);
  const KvLayout fp8 = model_kv_layout(config, DType::kF8E4M3, 64, 0);
  const auto name_space = [&](const KvLayout& rows, WeightForm form) {
    return make_identity(config, BlockHash{}, rows, *device_, AttentionMode::kAbsorb, form)
        .name_space;
  };
  EXPECT_NE(name_space(layout, WeightForm::kStored), name_space(layout, WeightForm::kInt8));
  EXPECT_NE(name_space(layout, WeightForm::kStored), name_space(fp8, WeightForm::kStored));
}

TEST_F(QuantizedModelTest, NoFiniteNumberIsNoInt8) {
  const std::string folder = bf16_model(5);
  take(folder);
  const bf16 infinity = to_bf16(INFINITY);
  std::vector<std::byte> bytes = bytes_[kWeight];
  std::memcpy(bytes.data() + 2 * 99, &infinity, 2);
  set(kWeight, DType::kBf16, bytes);
  expect_refused(folder, kWeight + ": holds a value that is no finite number", WeightForm::kInt8);
}

// The cache in fp8: near the model in fp32, the same bits however it is cut.
TEST_F(QuantizedModelTest, Fp8RowsStayNearAndDoNotDependOnChunks) {
  for (const uint64_t seed : {uint64_t{1}, uint64_t{5}}) {
    const std::string folder = bf16_model(seed);
    for (const AttentionForm form : kForms) {
      ModelHarness exact(folder, DType::kF32, form);
      ModelHarness rounded(folder, DType::kF32, form, {.fp8_cache = true});
      const uint32_t vocab = exact.config().vocab_size;
      const Tokens tokens = random_tokens(seed, 90, vocab);
      const ModelRun run = rounded.run(tokens, 0);
      EXPECT_LE(median_row_error(run.logits, exact.run(tokens, 0).logits, vocab), 0.1);
      EXPECT_EQ(rounded.run(tokens, 7), run);
      const size_t latent = exact.config().kv_lora_rank;
      EXPECT_EQ(run.rows[0].size() / tokens.size(),
                latent + 4 * ((latent + 127) / 128) + 2 * exact.config().rope_dim);
    }
  }
}

}  // namespace
}  // namespace ember::testing
