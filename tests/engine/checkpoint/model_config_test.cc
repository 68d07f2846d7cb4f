// Model config: the published numbers of the family, both spellings of RoPE, and refusals by field.
#include "engine/checkpoint/model_config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

const char* const kGolden = EMBER_SOURCE_DIR "/tests/data/goldens_v3";

class ModelConfigTest : public ::testing::Test {
 protected:
  // The golden's config with one piece of text replaced.
  Result<ModelConfig> with(const std::string& from, const std::string& to) {
    std::string text = read_file(std::string(kGolden) + "/config.json");
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    folder_.write("config.json", text);
    return load_model_config(folder_.path());
  }
  void expect_refused(const std::string& from, const std::string& to, const std::string& field,
                      ErrorCode code = ErrorCode::kInvalidArgument) {
    const auto config = with(from, to);
    ASSERT_FALSE(config.ok()) << to;
    EXPECT_EQ(config.error().code, code) << config.error().message;
    EXPECT_NE(config.error().message.find(field), std::string::npos) << config.error().message;
    EXPECT_NE(config.error().message.find("config.json"), std::string::npos);
  }
  TempFolder folder_;
};

ModelConfig deepseek_rope() {
  ModelConfig config;
  config.nope_dim = 128;
  config.rope_dim = 64;
  config.rope_theta = 10000;
  config.yarn.active = true;
  config.yarn.factor = 40;
  config.yarn.original_positions = 4096;
  config.yarn.mscale = 1;
  config.yarn.mscale_all_dim = 1;
  return config;
}

// A checkpoint that was cast to bf16 may still carry it; fp8 tensors are refused by their dtype.
TEST_F(ModelConfigTest, AQuantizationConfigDecidesNothing) {
  const auto config =
      with("\"vocab_size\"", R"("quantization_config": {"quant_method": "fp8"}, "vocab_size")");
  EXPECT_TRUE(config.ok()) << config.error().message;
}

TEST_F(ModelConfigTest, GoldenFieldsAreRead) {
  const ModelConfig config = std::move(load_model_config(kGolden)).value();
  EXPECT_EQ(config.vocab_size, 320u);
  EXPECT_EQ(config.heads, 4u);
  EXPECT_EQ(config.q_lora_rank, 48u);
  EXPECT_EQ(config.experts_per_token, 4u);
  EXPECT_EQ(config.routed_scale, 2.5f);
  EXPECT_EQ(config.yarn.original_positions, 64);
  EXPECT_EQ(config.eos_ids, std::vector<uint32_t>{1});
  EXPECT_FALSE(config.is_moe_layer(0));
  EXPECT_TRUE(config.is_moe_layer(1));
}

TEST_F(ModelConfigTest, DemoModelIsRead) {
  const auto config = load_model_config(EMBER_SOURCE_DIR "/models/demo");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config.value().max_positions, 4096u);
}

TEST_F(ModelConfigTest, DeepseekFrequenciesAndScale) {
  const ModelConfig config = deepseek_rope();
  const std::vector<float> f = config.inv_freq();
  const std::pair<size_t, double> known[] = {
      {0, 1},       {5, 0.237137371},    {10, 0.0562341325},  {11, 0.0390069266},
      {16, 0.0055}, {20, 7.90569415e-4}, {23, 3.33380358e-5}, {31, 3.33380358e-6}};
  for (const auto& [index, value] : known) {
    EXPECT_NEAR(double{f[index]} / value, 1, 1e-6) << index;
  }
  EXPECT_NEAR(config.softmax_scale(), 0.1352337789, 1e-8);
  EXPECT_EQ(config.rope_amplitude(), 1);
}

TEST_F(ModelConfigTest, KimiFrequenciesStepAtEqualBetas) {
  ModelConfig config = deepseek_rope();
  config.rope_theta = 50000;
  config.yarn.factor = 32;
  config.yarn.beta_fast = 1;
  const std::vector<float> f = config.inv_freq();
  EXPECT_NEAR(double{f[16]} / 0.00447213595, 1, 1e-6);
  EXPECT_NEAR(double{f[20]} / 3.61404677e-5, 1, 1e-6);
  EXPECT_NEAR(double{f[31]} / 8.76441291e-7, 1, 1e-6);
}

TEST_F(ModelConfigTest, DifferentMscalesSplitBetweenSoftmaxAndRope) {
  ModelConfig config = deepseek_rope();
  config.yarn.mscale = 0.707;
  const double log = std::log(40.0);
  const double all = 0.1 * log + 1;
  EXPECT_NEAR(config.softmax_scale(), all * all / std::sqrt(192.0), 1e-7);
  EXPECT_NEAR(config.rope_amplitude(), (0.0707 * log + 1) / all, 1e-7);
  config.yarn.mscale = config.yarn.mscale_all_dim = 0;
  EXPECT_NEAR(config.rope_amplitude(), all, 1e-7);
  EXPECT_NEAR(config.softmax_scale(), 1 / std::sqrt(192.0), 1e-7);
  config.yarn.attention_factor = 1.25;
  EXPECT_EQ(config.rope_amplitude(), 1.25f);
}

TEST_F(ModelConfigTest, BothRopeSpellingsMeanTheSame) {
  const ModelConfig old_form = std::move(load_model_config(kGolden)).value();
  const auto renamed = with("\"rope_scaling\"", "\"rope_parameters\"");
  ASSERT_TRUE(renamed.ok());
  EXPECT_EQ(renamed.value().inv_freq(), old_form.inv_freq());
  EXPECT_EQ(renamed.value().softmax_scale(), old_form.softmax_scale());
  const auto inside = with("\"type\": \"yarn\"", "\"rope_type\": \"yarn\", \"rope_theta\": 500.0");
  ASSERT_TRUE(inside.ok());
  EXPECT_EQ(inside.value().rope_theta, 500);
}

TEST_F(ModelConfigTest, QueriesWithoutLowRankAndPlainRope) {
  EXPECT_EQ(with("\"q_lora_rank\": 48", "\"q_lora_rank\": null").value().q_lora_rank, 0u);
  EXPECT_FALSE(with("\"type\": \"yarn\"", "\"type\": \"default\"").value().yarn.active);
}

TEST_F(ModelConfigTest, EndTokensAreTheUnionOfBothFiles) {
  folder_.write("generation_config.json", R"({"eos_token_id": [7, 1, 9]})");
  const auto config = with("\"eos_token_id\": 1", "\"eos_token_id\": [1, 5]");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config.value().eos_ids, (std::vector<uint32_t>{1, 5, 7, 9}));
  folder_.write("generation_config.json", R"({"eos_token_id": 320})");
  const auto refused = load_model_config(folder_.path());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("generation_config.json"), std::string::npos);
}

TEST_F(ModelConfigTest, ContradictionsAreRefusedByField) {
  expect_refused("\"num_key_value_heads\": 4", "\"num_key_value_heads\": 2", "num_key_value_heads");
  expect_refused("\"n_routed_experts\": 16", "\"n_routed_experts\": 18", "n_routed_experts");
  expect_refused("\"topk_group\": 2", "\"topk_group\": 5", "topk_group");
  expect_refused("\"topk_group\": 2", "\"topk_group\": 0", "topk_group");
  expect_refused("\"num_experts_per_tok\": 4", "\"num_experts_per_tok\": 9", "num_experts_per_tok");
  expect_refused("\"n_group\": 4", "\"n_group\": 16", "n_group");
  expect_refused("\"n_group\": 4", "\"n_group\": 0", "n_group");
  expect_refused("\"qk_rope_head_dim\": 16", "\"qk_rope_head_dim\": 15", "qk_rope_head_dim");
  expect_refused("\"hidden_size\": 96", "\"hidden_size\": 0", "hidden_size");
  expect_refused("\"factor\": 4", "\"factor\": 0.5", "rope_scaling.factor");
  expect_refused("\"beta_fast\": 32", "\"beta_fast\": 0.5", "rope_scaling.beta_fast");
  expect_refused("\"type\": \"yarn\"", "\"type\": \"yarn\", \"rope_type\": \"default\"",
                 "rope_scaling.type");
  expect_refused("\"rope_scaling\"", "\"rope_parameters\": {\"factor\": 2}, \"rope_scaling\"",
                 "rope_parameters");
  expect_refused("\"eos_token_id\": 1", "\"eos_token_id\": 320", "eos_token_id");
  expect_refused("\"bos_token_id\": 0", "\"bos_token_id\": 320", "bos_token_id");
}

TEST_F(ModelConfigTest, WrongTypesAreRefusedByField) {
  expect_refused("\"hidden_size\": 96", "\"hidden_size\": \"96\"", "hidden_size");
  expect_refused("\"hidden_size\": 96", "\"hidden_size\": 96.5", "hidden_size");
  expect_refused("\"hidden_size\": 96", "\"hidden_size\": -96", "hidden_size");
  expect_refused("\"hidden_size\": 96", "\"hidden_size\": 99999999999", "hidden_size");
  expect_refused(" \"hidden_size\": 96,", "", "hidden_size: missing");
  expect_refused("\"q_lora_rank\": 48,", "", "q_lora_rank: missing");
  expect_refused("\"norm_topk_prob\": true", "\"norm_topk_prob\": 1", "norm_topk_prob");
  expect_refused("\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": 0", "rms_norm_eps");
  expect_refused("\"eos_token_id\": 1", "\"eos_token_id\": [1, \"x\"]", "eos_token_id");
  expect_refused("\"factor\": 4", "\"factor\": \"4\"", "rope_scaling.factor");
  expect_refused("\"model_type\": \"deepseek_v3\"", "\"model_type\": 3", "model_type");
}

TEST_F(ModelConfigTest, WhatIsNotDoneIsRefusedByName) {
  const auto unsupported = ErrorCode::kUnsupported;
  expect_refused("\"deepseek_v3\"", "\"minicpm3\"", "minicpm3", unsupported);
  expect_refused("\"deepseek_v3\"", "\"deepseek_v4\"", "deepseek_v4", unsupported);
  expect_refused("\"use_cache\": true", "\"index_topk\": 2048", "index_topk", unsupported);
  expect_refused("\"use_cache\": true",
                 R"("quantization_config": {"quant_method": "compressed-tensors"})",
                 "compressed-tensors", unsupported);
  expect_refused("DeepseekV3ForCausalLM", "LlamaForCausalLM", "LlamaForCausalLM", unsupported);
  expect_refused("\"sigmoid\"", "\"softmax\"", "scoring_func", unsupported);
  expect_refused("\"noaux_tc\"", "\"greedy\"", "topk_method", unsupported);
  expect_refused("\"silu\"", "\"gelu\"", "hidden_act", unsupported);
  expect_refused("\"attention_bias\": false", "\"attention_bias\": true", "attention_bias",
                 unsupported);
  expect_refused("\"type\": \"yarn\"", "\"type\": \"longrope\"", "longrope", unsupported);
  expect_refused("\"use_cache\": true", "\"rope_interleave\": false", "rope_interleave",
                 unsupported);
}

// A golden of each architecture, by the fields that tell it from the others.
TEST_F(ModelConfigTest, EveryArchitectureIsRead) {
  const auto read = [](const std::string& name) {
    return std::move(load_model_config(EMBER_SOURCE_DIR "/tests/data/goldens_" + name)).value();
  };
  const ModelConfig v2 = read("v2");
  EXPECT_EQ(v2.router_score, RouterScore::kSoftmax);
  EXPECT_EQ(v2.expert_groups, 8u);
  EXPECT_FALSE(v2.normalize_routes);
  EXPECT_EQ(read("v2_lite").expert_groups, 1u);
  EXPECT_EQ(read("moonlight").q_lora_rank, 0u);
  EXPECT_FALSE(read("moonlight").yarn.active);
  EXPECT_EQ(read("glm_lite").router_score, RouterScore::kSigmoid);
  EXPECT_EQ(read("glm_lite").inner_norm_eps, 1e-6f);
  const ModelConfig youtu = read("youtu");
  EXPECT_FALSE(youtu.is_moe_layer(3));
  EXPECT_TRUE(youtu.tied_head);
  const auto kimi = with("\"deepseek_v3\"", "\"kimi_k2\"");
  ASSERT_TRUE(kimi.ok()) << kimi.error().message;
  EXPECT_EQ(kimi.value().router_score, RouterScore::kSigmoid);
}

TEST_F(ModelConfigTest, LayersMayBeListedByType) {
  const auto types = [&](const std::string& list) {
    return with("\"use_cache\": true", "\"mlp_layer_types\": [" + list + "]");
  };
  const auto two = types(R"("dense", "dense", "sparse", "sparse")");
  ASSERT_TRUE(two.ok()) << two.error().message;
  EXPECT_EQ(two.value().first_dense_layers, 2u);
  EXPECT_EQ(types(R"("dense", "sparse", "dense", "sparse")").error().code,
            ErrorCode::kUnsupported);
  EXPECT_FALSE(types(R"("dense", "sparse")").ok());
}

TEST_F(ModelConfigTest, NoConfigAndNoJsonAreRefused) {
  EXPECT_EQ(load_model_config(folder_.path()).error().code, ErrorCode::kIo);
  folder_.write("config.json", "{\"model_type\": ");
  EXPECT_EQ(load_model_config(folder_.path()).error().code, ErrorCode::kCorruption);
  folder_.write("config.json", R"({"a": 1, "a": 2})");
  EXPECT_NE(load_model_config(folder_.path()).error().message.find("twice"), std::string::npos);
  const std::string deep = std::string(1000, '[') + std::string(1000, ']');
  folder_.write("config.json", "{\"a\": " + deep + "}");
  EXPECT_NE(load_model_config(folder_.path()).error().message.find("nested"), std::string::npos);
}

}  // namespace
}  // namespace ember::testing
