// Weights: conversions to the bit, and checkpoints with too little, too much or the wrong shape.
#include "engine/model/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "engine/model/weight_convert.h"
#include "tests/engine/model/random_models.h"
#include "tests/support/temp_folder.h"
#include "tools/make_random_model.h"

namespace ember::testing {
namespace {

class ModelWeightsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    config_ = random_model_config(0);
    ASSERT_TRUE(make_random_model(config_, 5, DType::kF32, folder_.path()).ok());
    const auto file = std::move(SafetensorsFile::open(path())).value();
    for (const auto& [name, view] : file->tensors()) {
      bytes_[name].assign(view.bytes.begin(), view.bytes.end());
      tensors_[name] = {name, view.dtype, view.shape, bytes_[name]};
    }
  }
  std::string path() const { return folder_ / "model.safetensors"; }
  void rewrite() {
    std::vector<TensorToWrite> list;
    for (const auto& [name, tensor] : tensors_) list.push_back(tensor);
    std::filesystem::remove(path());
    ASSERT_TRUE(write_safetensors(path(), list).ok());
  }
  Result<std::unique_ptr<ModelWeights>> load(DType precision = DType::kF32) {
    auto checkpoint = Checkpoint::open(folder_.path());
    if (!checkpoint.ok()) return checkpoint.error();
    return load_weights(std::move(checkpoint).value(), config_, precision, *device_, {});
  }
  void expect_refused(const std::string& part) {
    const auto weights = load();
    ASSERT_FALSE(weights.ok());
    EXPECT_NE(weights.error().message.find(part), std::string::npos) << weights.error().message;
  }
  // The tensor in another dtype, in storage of this fixture.
  void convert(const std::string& name, DType dtype) {
    TensorToWrite& tensor = tensors_.at(name);
    const size_t count = bytes_[name].size() / sizeof(float);
    std::vector<std::byte> narrow(count * dtype_bytes(dtype));
    convert_values(bytes_[name].data(), DType::kF32, narrow.data(), dtype, count);
    bytes_[name] = std::move(narrow);
    tensor.dtype = dtype;
    tensor.bytes = bytes_[name];
  }

  TempFolder folder_;
  ModelConfig config_;
  std::map<std::string, std::vector<std::byte>> bytes_;
  std::map<std::string, TensorToWrite> tensors_;
  std::unique_ptr<Device> device_ = make_sim_device(1);
};

TEST_F(ModelWeightsTest, Fp32MatricesAreUsedAsMapped) {
  const auto weights = std::move(load()).value();
  const auto view = weights->checkpoint->tensor("model.embed_tokens.weight",
                                                {config_.vocab_size, config_.hidden});
  EXPECT_EQ(weights->embedding.data, static_cast<const void*>(view.value().bytes.data()));
  EXPECT_EQ(weights->owned.size(), config_.layers);  // the transposed key parts alone
}

TEST_F(ModelWeightsTest, Bf16PrecisionRoundsMatricesAndKeepsNorms) {
  const auto weights = std::move(load(DType::kBf16)).value();
  EXPECT_EQ(weights->embedding.dtype, DType::kBf16);
  EXPECT_EQ(weights->final_norm.dtype, DType::kF32);
  EXPECT_EQ(weights->layers[1].router.dtype, DType::kF32);
  EXPECT_EQ(weights->layers[1].expert_dtype, DType::kBf16);
  const auto first = load_unaligned<float>(bytes_["model.embed_tokens.weight"].data());
  EXPECT_EQ(*static_cast<const bf16*>(weights->embedding.data), to_bf16(first));
}

TEST_F(ModelWeightsTest, KeyAbsorbIsTheTransposedKeyPart) {
  const auto weights = std::move(load()).value();
  const LayerWeights& layer = weights->layers[2];
  const auto* kv_b = static_cast<const float*>(layer.kv_b.data);
  const auto* absorb = static_cast<const float*>(layer.key_absorb.data);
  const size_t head_rows = config_.nope_dim + config_.value_dim;
  for (size_t h = 0; h < config_.heads; ++h) {
    for (size_t n = 0; n < config_.nope_dim; ++n) {
      for (size_t c = 0; c < config_.kv_lora_rank; ++c) {
        ASSERT_EQ(absorb[(h * config_.kv_lora_rank + c) * config_.nope_dim + n],
                  kv_b[(h * head_rows + n) * config_.kv_lora_rank + c]);
      }
    }
  }
}

TEST_F(ModelWeightsTest, RouterBiasMayBeBf16) {
  convert("model.layers.1.mlp.gate.e_score_correction_bias", DType::kBf16);
  rewrite();
  const auto weights = std::move(load()).value();
  ASSERT_EQ(weights->layers[1].router_bias.size(), config_.routed_experts);
  EXPECT_NE(weights->layers[1].router_bias[0], 0.0f);
}

TEST_F(ModelWeightsTest, OneFp32ExpertMakesItsLayerFp32) {
  for (auto& [name, tensor] : tensors_) {
    const bool stays = name.find("layers.1.mlp.experts.3.up") != std::string::npos;
    if (name.find(".experts.") != std::string::npos && !stays) convert(name, DType::kBf16);
  }
  rewrite();
  const auto weights = std::move(load()).value();
  EXPECT_EQ(weights->layers[1].expert_dtype, DType::kF32);
  EXPECT_EQ(weights->layers[2].expert_dtype, DType::kBf16);
}

TEST_F(ModelWeightsTest, MissingTensorsAreNamed) {
  tensors_.erase("model.layers.1.mlp.experts.7.down_proj.weight");
  rewrite();
  expect_refused("model.layers.1.mlp.experts.7.down_proj.weight is missing");
}

TEST_F(ModelWeightsTest, AnUntiedHeadMustBeThere) {
  tensors_.erase("lm_head.weight");
  rewrite();
  expect_refused("lm_head.weight is missing");
  config_.tied_head = true;
  const auto weights = std::move(load()).value();
  EXPECT_EQ(weights->head.data, weights->embedding.data);
}

TEST_F(ModelWeightsTest, WrongShapesAreNamedWithBoth) {
  TensorToWrite& tensor = tensors_.at("model.layers.0.self_attn.o_proj.weight");
  std::swap(tensor.shape[0], tensor.shape[1]);
  rewrite();
  expect_refused("o_proj.weight: found shape [100, 56], expected [56, 100]");
}

TEST_F(ModelWeightsTest, UnknownTensorsAreRefusedAndKnownExtrasSkipped) {
  const float value = 1;
  const auto extra = [&](const std::string& name) {
    tensors_[name] = {name, DType::kF32, {1}, std::as_bytes(std::span(&value, 1))};
  };
  extra("model.layers.3.eh_proj.weight");
  extra("model.layers.0.self_attn.rotary_emb.inv_freq");
  rewrite();
  EXPECT_TRUE(load().ok());
  extra("model.layers.2.self_attn.q_proj.bias");
  rewrite();
  expect_refused("model.layers.2.self_attn.q_proj.bias");
}

TEST(WeightConvertTest, EveryHalfWidensExactly) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = half_to_float(half);
    const uint32_t exponent = (bits >> 10) & 0x1f;
    const auto mantissa = static_cast<double>(bits & 0x3ff);
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(value), (bits & 0x3ff) != 0);
      continue;
    }
    const double size = exponent == 0
                            ? std::ldexp(mantissa, -24)
                            : std::ldexp(1024 + mantissa, static_cast<int>(exponent) - 25);
    EXPECT_EQ(double{value}, (bits & 0x8000) != 0 ? -size : size);
    EXPECT_EQ(std::signbit(value), (bits & 0x8000) != 0);
  }
}

}  // namespace
}  // namespace ember::testing
