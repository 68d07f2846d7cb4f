// Identity: what changes a latent changes the namespace, and nothing of the instance does.
#include "engine/model/identity.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/engine/model/random_models.h"

namespace ember::testing {
namespace {

class IdentityTest : public ::testing::Test {
 protected:
  NamespaceHash of(const ModelConfig& config, DType dtype = DType::kBf16,
                   uint32_t block_tokens = 64, uint32_t grouped = 1,
                   AttentionMode mode = AttentionMode::kAbsorb) {
    last_ = make_identity(config, weights_, model_kv_layout(config, dtype, block_tokens, grouped),
                          *device_, mode);
    return last_.name_space;
  }
  BlockHash weights_{};
  Identity last_;
  std::unique_ptr<Device> device_ = make_sim_device(1);
};

TEST_F(IdentityTest, EveryFieldOfMeaningChangesTheNamespace) {
  const ModelConfig base = random_model_config(0);
  std::set<NamespaceHash> seen = {of(base)};
  const auto expect_new = [&](const NamespaceHash& hash, const char* what) {
    EXPECT_TRUE(seen.insert(hash).second) << what;
  };
  const auto changed = [&](auto change) {
    ModelConfig config = base;
    change(config);
    return of(config);
  };
  expect_new(changed([](ModelConfig& c) { c.rope_theta = 10001; }), "theta");
  expect_new(changed([](ModelConfig& c) { c.yarn.active = false; }), "yarn");
  expect_new(changed([](ModelConfig& c) { c.yarn.factor = 8.5; }), "factor");
  expect_new(changed([](ModelConfig& c) { c.yarn.mscale = 0.81; }), "mscale");
  expect_new(changed([](ModelConfig& c) { c.yarn.truncate = false; }), "truncate");
  expect_new(changed([](ModelConfig& c) { c.norm_eps = 2e-5f; }), "norm_eps");
  expect_new(changed([](ModelConfig& c) { c.inner_norm_eps = 2e-6f; }), "inner_norm_eps");
  expect_new(changed([](ModelConfig& c) { c.routed_scale = 1.8f; }), "routed_scale");
  expect_new(changed([](ModelConfig& c) { c.experts_per_token = 2; }), "experts_per_token");
  expect_new(changed([](ModelConfig& c) { c.kv_lora_rank += 2; }), "kv_lora_rank");
  expect_new(of(base, DType::kF32), "cache dtype");
  expect_new(of(base, DType::kBf16, 32), "block tokens");
  weights_.bytes[0] = 1;
  expect_new(of(base), "weights");
}

TEST_F(IdentityTest, TheInstanceIsNotInIt) {
  const ModelConfig base = random_model_config(0);
  const NamespaceHash hash = of(base);
  EXPECT_EQ(of(base, DType::kBf16, 64, 3), hash);
  EXPECT_EQ(of(base, DType::kBf16, 64, 1, AttentionMode::kNaive), hash);
  ModelConfig longer = base;
  longer.max_positions *= 2;
  EXPECT_EQ(of(longer), hash);
}

TEST_F(IdentityTest, TheBuildNamesKernelsAndForm) {
  const ModelConfig base = random_model_config(0);
  of(base);
  const Identity absorb = last_;
  of(base, DType::kBf16, 64, 1, AttentionMode::kNaive);
  EXPECT_NE(absorb.numerics_build, last_.numerics_build);
  EXPECT_EQ(absorb.numerics_build_text, device_->kernel_family() + "/absorb");
}

}  // namespace
}  // namespace ember::testing
