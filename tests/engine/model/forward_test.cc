// Forward: the fast path against the plain reference, and bit equality however a prompt is run.
#include "engine/model/forward.h"

#include <gtest/gtest.h>

#include "engine/model/reference_forward.h"
#include "tests/engine/model/model_harness.h"
#include "tests/engine/model/random_models.h"
#include "tests/support/temp_folder.h"
#include "tools/make_random_model.h"

namespace ember::testing {
namespace {

constexpr AttentionForm kForms[] = {AttentionForm::kAbsorb, AttentionForm::kNaive};

class ForwardTest : public ::testing::Test {
 protected:
  std::string model(uint64_t seed, DType dtype = DType::kBf16) {
    const std::string folder = folder_ / std::to_string(seed);
    EXPECT_TRUE(make_random_model(random_model_config(seed), seed, dtype, folder).ok());
    return folder;
  }
  TempFolder folder_;
};

std::vector<float> as_floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST_F(ForwardTest, Fp32AgreesWithThePlainReference) {
  for (uint64_t seed = 0; seed < kRandomShapes; ++seed) {
    const std::string folder = model(seed, seed % 2 == 0 ? DType::kBf16 : DType::kF32);
    for (const AttentionForm form : kForms) {
      ModelHarness fast(folder, DType::kF32, form);
      const Tokens tokens = random_tokens(seed, 100, fast.config().vocab_size);
      const ReferenceOutput plain = reference_forward(fast.weights(), tokens, form);
      const ModelRun run = fast.run(tokens, 37);
      EXPECT_LE(worst_row_error(run.logits, plain.logits, fast.config().vocab_size), 2e-5)
          << "seed " << seed;
      const size_t row = fast.config().kv_lora_rank + fast.config().rope_dim;
      for (size_t layer = 0; layer < run.rows.size(); ++layer) {
        EXPECT_LE(worst_row_error(as_floats(run.rows[layer]), plain.latents[layer], row), 2e-5)
            << "seed " << seed << " layer " << layer;
      }
    }
  }
}

TEST_F(ForwardTest, Bf16StaysNearThePlainReference) {
  for (uint64_t seed = 0; seed < kRandomModels; ++seed) {
    const std::string folder = model(seed);
    for (const AttentionForm form : kForms) {
      ModelHarness fast(folder, DType::kBf16, form);
      const Tokens tokens = random_tokens(seed, 100, fast.config().vocab_size);
      const ReferenceOutput plain = reference_forward(fast.weights(), tokens, form);
      EXPECT_LE(
          median_row_error(fast.run(tokens, 0).logits, plain.logits, fast.config().vocab_size),
          0.05)
          << "seed " << seed;
    }
  }
}

TEST_F(ForwardTest, ChunksDoNotChangeABit) {
  for (uint64_t seed = 0; seed < kRandomModels; ++seed) {
    const std::string folder = model(seed);
    // So that each variant of a model is seen in both precisions.
    const DType precision = seed == 0 || seed == 3 ? DType::kBf16 : DType::kF32;
    for (const AttentionForm form : kForms) {
      ModelHarness fast(folder, precision, form);
      const Tokens tokens = random_tokens(seed, 150, fast.config().vocab_size);
      const ModelRun whole = fast.run(tokens, 0);
      for (const size_t chunk : {size_t{1}, size_t{7}, size_t{64}}) {
        EXPECT_EQ(fast.run(tokens, chunk), whole) << "seed " << seed << " chunk " << chunk;
      }
    }
  }
}

TEST_F(ForwardTest, WorkersDoNotChangeABit) {
  const std::string folder = model(0);
  for (const AttentionForm form : kForms) {
    ModelHarness two(folder, DType::kBf16, form, 2);
    const Tokens tokens = random_tokens(3, 130, two.config().vocab_size);
    const ModelRun expected = two.run(tokens, 0);
    for (const int workers : {1, 3}) {
      ModelHarness other(folder, DType::kBf16, form, workers);
      EXPECT_EQ(other.run(tokens, 0), expected) << workers << " workers";
    }
  }
}

TEST_F(ForwardTest, NeighboursInAStepDoNotChangeABit) {
  for (uint64_t seed = 0; seed < 2; ++seed) {
    const std::string folder = model(seed);
    for (const AttentionForm form : kForms) {
      ModelHarness fast(folder, DType::kBf16, form);
      const uint32_t vocab = fast.config().vocab_size;
      std::vector<Tokens> prompts = {random_tokens(1, 90, vocab), random_tokens(2, 5, vocab),
                                     random_tokens(3, 64, vocab)};
      std::vector<ModelRun> alone;
      for (const Tokens& prompt : prompts) alone.push_back(fast.run(prompt, 0));
      for (const size_t chunk : {size_t{0}, size_t{1}, size_t{33}}) {
        EXPECT_EQ(fast.run_together(prompts, chunk), alone) << "chunk " << chunk;
      }
      std::swap(prompts[0], prompts[2]);
      std::swap(alone[0], alone[2]);
      EXPECT_EQ(fast.run_together(prompts, 0), alone);
    }
  }
}

TEST_F(ForwardTest, DrawsComeInTheOrderOfTheSequences) {
  ModelHarness fast(model(1), DType::kF32, AttentionForm::kAbsorb);
  const uint32_t vocab = fast.config().vocab_size;
  const std::vector<Tokens> prompts = {random_tokens(4, 9, vocab), random_tokens(5, 7, vocab),
                                       random_tokens(6, 8, vocab)};
  std::vector<int32_t> alone;
  for (const Tokens& prompt : prompts) alone.push_back(fast.greedy(prompt, 1)[0]);
  // The middle one gets logits but is not drawn; the last one gets two rows of logits.
  EXPECT_EQ(fast.draw_together(prompts, {1, 1, 2}, {true, false, true}),
            (Tokens{alone[0], alone[2]}));
  EXPECT_EQ(fast.draw_together(prompts, {1, 1, 1}, {true, true, true}), alone);
  EXPECT_EQ(fast.draw_together(prompts, {1, 0, 1}, {true, false, true}),
            (Tokens{alone[0], alone[2]}));
}

TEST_F(ForwardTest, MisuseAborts) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  ModelHarness fast(model(1), DType::kF32, AttentionForm::kAbsorb, 1);
  const Tokens tokens = {1, 2, 3};
  StepSequence sequence;
  sequence.tokens = tokens;
  sequence.first_position = 62;
  sequence.block_table = fast.table(0).first(1);
  EXPECT_DEATH(fast.forward().build({&sequence, 1}), "block table shorter");
  const Tokens foreign = {97};
  sequence.tokens = foreign;
  EXPECT_DEATH(fast.forward().build({&sequence, 1}), "outside the vocabulary");
}

}  // namespace
}  // namespace ember::testing
