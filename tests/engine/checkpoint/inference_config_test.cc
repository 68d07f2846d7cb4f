// Inference config: the files of configs/models, equality with the other form, and refusals by key.
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/checkpoint/model_config.h"
#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

const std::string kModels = EMBER_SOURCE_DIR "/configs/models/";

ModelConfig read(const std::string& name) {
  auto config = load_model_config_file(kModels + name + ".json");
  EXPECT_TRUE(config.ok()) << config.error().message;
  return std::move(config).value();
}

class InferenceConfigTest : public ::testing::Test {
 protected:
  // config_671B with one piece of text replaced.
  Result<ModelConfig> with(const std::string& from, const std::string& to) {
    std::string text = read_file(kModels + "config_671B.json");
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    folder_.write("model.json", text);
    return load_model_config_file(folder_ / "model.json");
  }
  void expect_refused(const std::string& from, const std::string& to, const std::string& part) {
    const auto config = with(from, to);
    ASSERT_FALSE(config.ok()) << to;
    EXPECT_NE(config.error().message.find(part), std::string::npos) << config.error().message;
    EXPECT_NE(config.error().message.find("model.json"), std::string::npos);
  }
  TempFolder folder_;
};

TEST_F(InferenceConfigTest, EveryFileOfConfigsModelsIsRead) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kModels)) {
    const auto config = load_model_config_file(entry.path().string());
    EXPECT_TRUE(config.ok()) << entry.path() << ": " << config.error().message;
    ++files;
  }
  EXPECT_GE(files, 10u);
}

TEST_F(InferenceConfigTest, DefaultsAreThoseOfTheReference) {
  const ModelConfig lite = read("config_16B");
  EXPECT_EQ(lite.model_type, "deepseek_v2");
  EXPECT_EQ(lite.router_score, RouterScore::kSoftmax);
  EXPECT_FALSE(lite.normalize_routes);
  EXPECT_EQ(lite.max_positions, 16384u);
  EXPECT_TRUE(lite.yarn.active);
  EXPECT_EQ(lite.yarn.factor, 40);
  EXPECT_NEAR(lite.softmax_scale(), 0.1147213868, 1e-8);
  EXPECT_EQ(lite.rope_amplitude(), 1);
  EXPECT_EQ(read("config_236B").expert_groups, 8u);
  EXPECT_NEAR(read("config_671B").softmax_scale(), 0.1352337789, 1e-8);
}

TEST_F(InferenceConfigTest, TheFamilysSoftmaxScalesAreThePublishedOnes) {
  EXPECT_NEAR(read("kimi_k2").softmax_scale(), 0.1308607950, 2e-8);
  EXPECT_NEAR(read("moonlight").softmax_scale(), 0.0721687836, 2e-8);
  EXPECT_NEAR(read("glm_4_7_flash").softmax_scale(), 0.0625, 2e-8);
  EXPECT_NEAR(read("v2").softmax_scale(), 0.1147213868, 2e-8);
  EXPECT_FALSE(read("youtu_llm_2b").yarn.active);
  EXPECT_EQ(read("moonlight").norm_eps, 1e-5f);
  EXPECT_EQ(read("kimi_k2").eos_ids, (std::vector<uint32_t>{163585, 163586}));
}

// The same model in both forms is the same to everything behind the config.
TEST_F(InferenceConfigTest, BothFormsOfAModelAgree) {
  folder_.write("config.json", R"({"model_type": "deepseek_v3", "vocab_size": 129280,
    "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
    "num_hidden_layers": 61, "num_attention_heads": 128, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "n_group": 8,
    "topk_group": 4, "norm_topk_prob": true, "routed_scaling_factor": 2.5, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "max_position_embeddings": 163840, "rope_theta": 10000, "rope_scaling": {"type": "yarn",
    "factor": 40, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1,
    "mscale": 1.0, "mscale_all_dim": 1.0}})");
  const ModelConfig hf = std::move(load_model_config(folder_.path())).value();
  const ModelConfig other = read("v3");
  EXPECT_EQ(hf.model_type, other.model_type);
  EXPECT_EQ(hf.inv_freq(), other.inv_freq());
  EXPECT_EQ(hf.softmax_scale(), other.softmax_scale());
  EXPECT_EQ(hf.max_positions, other.max_positions);
  EXPECT_EQ(hf.routed_scale, other.routed_scale);
  EXPECT_EQ(hf.normalize_routes, other.normalize_routes);
  EXPECT_EQ(hf.first_dense_layers, other.first_dense_layers);
  EXPECT_EQ(hf.norm_eps, other.norm_eps);
}

TEST_F(InferenceConfigTest, WhatIsNotDoneIsRefusedByKey) {
  expect_refused("\"dtype\": \"fp8\"", "\"index_topk\": 2048", "index_topk");
  expect_refused("\"dtype\": \"fp8\"", "\"dtype\": \"int4\"", "dtype");
  expect_refused("\"dtype\": \"fp8\"", "\"window\": 3", "window");
  expect_refused("\"sigmoid\"", "\"sqrtsoftplus\"", "score_func");
  expect_refused("\"dim\": 7168", "\"dim\": 0", "field dim: found 0");
  expect_refused("\"n_expert_groups\": 8", "\"n_expert_groups\": 7", "n_routed_experts");
  expect_refused("\"v_head_dim\": 128,", "", "v_head_dim");
  expect_refused("\"dtype\": \"fp8\"", "\"rope_factor\": 0.5", "rope_factor");
}

}  // namespace
}  // namespace ember::testing
