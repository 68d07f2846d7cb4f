// Compares random checkpoints with `transformers`, where python3 (or EMBER_PYTHON) has it.
// EMBER_MODELS says how many, EMBER_SEED which.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/engine/model/model_harness.h"
#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

constexpr double kFp32Bar = 1e-4;
constexpr size_t kPrompts = 3;

std::string from_environment(const char* name, const char* otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : text;
}

void expect_same_logits(const std::string& folder) {
  const auto file = std::move(SafetensorsFile::open(folder + "/expected.safetensors")).value();
  for (const AttentionForm form : {AttentionForm::kAbsorb, AttentionForm::kNaive}) {
    ModelHarness model(folder, DType::kF32, form);
    for (size_t i = 0; i < kPrompts; ++i) {
      const std::string number = std::to_string(i);
      const auto prompt = expected_values<int32_t>(*file, "prompt." + number);
      const auto logits = expected_values<float>(*file, "logits." + number);
      const double error =
          worst_row_error(model.run(prompt, 64).logits, logits, model.config().vocab_size);
      EXPECT_LE(error, kFp32Bar) << "form " << static_cast<int>(form) << ", prompt " << i;
      std::printf("%s form %d prompt %zu: %.2e of the largest logit\n", folder.c_str(),
                  static_cast<int>(form), i, error);
    }
  }
}

TEST(TransformersTest, RandomCheckpointsHaveTheSameLogits) {
  const std::string python = from_environment("EMBER_PYTHON", "python3");
  const std::string probe = python + " -c 'import torch, transformers' 2>/dev/null";
  if (std::system(probe.c_str()) != 0) {
    GTEST_SKIP() << python
                 << " has no transformers (pip install torch transformers in a venv, then "
                    "EMBER_PYTHON=venv/bin/python): nothing was compared";
  }
  const int models = std::atoi(from_environment("EMBER_MODELS", "8").c_str());
  const TempFolder folder;
  const std::string command = python + " '" EMBER_SOURCE_DIR
                              "/tests/engine/model/transformers_models.py' '" + folder.path() +
                              "' --models " + std::to_string(models) + " --seed " +
                              from_environment("EMBER_SEED", "1");
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  for (int i = 0; i < models; ++i) {
    SCOPED_TRACE("model " + std::to_string(i) + " of EMBER_SEED");
    expect_same_logits(folder / std::to_string(i));
  }
}

}  // namespace
}  // namespace ember::testing
