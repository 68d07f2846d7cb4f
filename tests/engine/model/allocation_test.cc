// Allocation: building a step touches the heap not once, from the first step on.
#include <gtest/gtest.h>

#include <array>

#include "tests/engine/model/model_harness.h"
#include "tests/support/allocation_counter.h"

namespace ember::testing {
namespace {

TEST(ForwardAllocationTest, BuildingAStepAllocatesNothing) {
  for (const AttentionForm form : {AttentionForm::kAbsorb, AttentionForm::kNaive}) {
    ModelHarness model(EMBER_SOURCE_DIR "/tests/data/goldens_v3", DType::kBf16, form);
    const Tokens prompt = random_tokens(1, 100, 320);
    std::array<StepSequence, 3> sequences;
    for (size_t s = 0; s < sequences.size(); ++s) {
      sequences[s].tokens = prompt;
      sequences[s].block_table = model.table(s);
      sequences[s].logit_rows = 2;
      sequences[s].sample = true;
    }
    const uint64_t before = allocations_of_this_thread();
    for (int step = 0; step < 3; ++step) model.forward().build(sequences);
    EXPECT_EQ(allocations_of_this_thread(), before);
  }
}

}  // namespace
}  // namespace ember::testing
