// Demo model: the small trained model against what transformers computed for it.
#include <gtest/gtest.h>

#include "engine/model/reference_forward.h"
#include "tests/engine/model/model_harness.h"

namespace ember::testing {
namespace {

const char* const kFolder = EMBER_SOURCE_DIR "/models/demo";
constexpr size_t kVocab = 4096;
constexpr size_t kRow = 160;
constexpr size_t kLastRows = 8;

std::unique_ptr<SafetensorsFile> expected() {
  return std::move(SafetensorsFile::open(std::string(kFolder) + "/expected.safetensors")).value();
}

Tokens prompt(const SafetensorsFile& file, int index) {
  return expected_values<int32_t>(file, "prompt." + std::to_string(index));
}

TEST(DemoModelTest, Fp32LogitsAndLatentsAgree) {
  const auto file = expected();
  for (const AttentionForm form : {AttentionForm::kAbsorb, AttentionForm::kNaive}) {
    ModelHarness model(kFolder, DType::kF32, form);
    for (const int index : {0, 1}) {
      const ModelRun run = model.run(prompt(*file, index), 0);
      const auto last = std::span(run.logits).last(kLastRows * kVocab);
      const auto logits = expected_values<float>(*file, "last_logits." + std::to_string(index));
      EXPECT_LE(worst_row_error(last, logits, kVocab), 1e-4) << "prompt " << index;
      for (size_t layer = 0; index == 1 && layer < run.rows.size(); ++layer) {
        std::vector<float> rows(run.rows[layer].size() / sizeof(float));
        std::memcpy(rows.data(), run.rows[layer].data(), run.rows[layer].size());
        const auto latent = expected_values<float>(*file, "latent." + std::to_string(layer));
        EXPECT_LE(worst_row_error(rows, latent, kRow), 1e-4) << "layer " << layer;
      }
    }
  }
}

TEST(DemoModelTest, GreedyAnswersAreTheReferences) {
  const auto file = expected();
  for (const DType precision : {DType::kF32, DType::kBf16}) {
    ModelHarness model(kFolder, precision, AttentionForm::kAbsorb);
    for (int index = 0; index < (precision == DType::kBf16 ? 4 : 3); ++index) {
      const auto greedy = expected_values<int32_t>(*file, "greedy." + std::to_string(index));
      EXPECT_EQ(model.greedy(prompt(*file, index), greedy.size()), greedy)
          << "prompt " << index << " in " << dtype_name(precision);
    }
  }
}

}  // namespace
}  // namespace ember::testing
