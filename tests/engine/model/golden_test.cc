// Goldens: tiny models of every architecture against what transformers computed for them.
#include <gtest/gtest.h>

#include "engine/model/reference_forward.h"
#include "tests/engine/model/model_harness.h"

namespace ember::testing {
namespace {

constexpr double kFp32Bar = 1e-4;
constexpr AttentionForm kForms[] = {AttentionForm::kAbsorb, AttentionForm::kNaive};

// A folder under tests/data, and what the reference shows for its three prompts when it runs in
// bf16 itself: per cent, median over positions. It did not run v3_fp8 in bf16: v3's figures stand
// in for it.
struct Golden {
  const char* name;
  double reference_per_cent[3];
};

constexpr Golden kGoldens[] = {
    {"v3", {1.0, 3.3, 4.7}},      {"v3_fp8", {1.0, 3.3, 4.7}},    {"v2", {2.7, 4.2, 4.0}},
    {"v2_lite", {1.4, 2.4, 2.4}}, {"moonlight", {0.8, 1.7, 2.0}}, {"glm_lite", {1.0, 1.6, 2.6}},
    {"youtu", {1.0, 1.4, 1.4}},
};

std::vector<float> as_floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class GoldenTest : public ::testing::TestWithParam<Golden> {
 protected:
  std::string folder() const {
    return std::string(EMBER_SOURCE_DIR "/tests/data/goldens_") + GetParam().name;
  }
  Tokens prompt(int i) const {
    return expected_values<int32_t>(*file_, "prompt." + std::to_string(i));
  }
  std::vector<float> expected(const std::string& tensor, size_t index) const {
    return expected_values<float>(*file_, tensor + "." + std::to_string(index));
  }
  const std::unique_ptr<SafetensorsFile> file_ =
      std::move(SafetensorsFile::open(folder() + "/expected.safetensors")).value();
};

TEST_P(GoldenTest, Fp32LogitsAgreeAtEveryPosition) {
  for (const AttentionForm form : kForms) {
    ModelHarness model(folder(), DType::kF32, form);
    for (int i = 0; i < 3; ++i) {
      const double error =
          worst_row_error(model.run(prompt(i), 64).logits,
                          expected("logits", static_cast<size_t>(i)), model.config().vocab_size);
      EXPECT_LE(error, kFp32Bar) << "prompt " << i;
      RecordProperty("error_" + std::to_string(i), std::to_string(error));
    }
  }
}

TEST_P(GoldenTest, Fp32LatentsAgreeInEveryLayer) {
  for (const AttentionForm form : kForms) {
    ModelHarness model(folder(), DType::kF32, form);
    const size_t width = model.config().kv_lora_rank + model.config().rope_dim;
    const ModelRun run = model.run(prompt(1), 0);
    for (size_t layer = 0; layer < run.rows.size(); ++layer) {
      EXPECT_LE(worst_row_error(as_floats(run.rows[layer]), expected("latent", layer), width),
                kFp32Bar)
          << "layer " << layer;
    }
  }
}

TEST_P(GoldenTest, Fp32GreedyContinuationsAreEqual) {
  for (const AttentionForm form : kForms) {
    ModelHarness model(folder(), DType::kF32, form);
    for (int i = 0; i < 3; ++i) {
      const auto greedy = expected_values<int32_t>(*file_, "greedy." + std::to_string(i));
      EXPECT_EQ(model.greedy(prompt(i), greedy.size()), greedy) << "prompt " << i;
    }
  }
}

// The bar is 1.25 times what the reference shows.
TEST_P(GoldenTest, Bf16LogitsAreAsNearAsTheReferenceInBf16) {
  for (const AttentionForm form : kForms) {
    ModelHarness model(folder(), DType::kBf16, form);
    for (int i = 0; i < 3; ++i) {
      const double bar = 1.25 * GetParam().reference_per_cent[i];
      const double per_cent = 100 * median_row_error(model.run(prompt(i), 0).logits,
                                                     expected("logits", static_cast<size_t>(i)),
                                                     model.config().vocab_size);
      EXPECT_LE(per_cent, bar) << "prompt " << i;
      std::printf("%s form %d prompt %d: %.3f per cent, bar %.3f\n", GetParam().name,
                  static_cast<int>(form), i, per_cent, bar);
    }
  }
}

TEST_P(GoldenTest, PlainReferenceAgreesInBothForms) {
  const ModelHarness model(folder(), DType::kF32, AttentionForm::kAbsorb);
  const ModelConfig& config = model.config();
  for (const AttentionForm form : kForms) {
    const ReferenceOutput output = reference_forward(model.weights(), prompt(1), form);
    EXPECT_LE(worst_row_error(output.logits, expected("logits", 1), config.vocab_size), kFp32Bar);
    for (size_t layer = 0; layer < output.latents.size(); ++layer) {
      EXPECT_LE(worst_row_error(output.latents[layer], expected("latent", layer),
                                config.kv_lora_rank + config.rope_dim),
                kFp32Bar);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Family, GoldenTest, ::testing::ValuesIn(kGoldens),
                         [](const auto& golden) { return std::string(golden.param.name); });

}  // namespace
}  // namespace ember::testing
