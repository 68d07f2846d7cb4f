// Allocation: building a step touches the heap not once, from the first step on.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <new>

#include "tests/engine/model/model_harness.h"

namespace {

thread_local size_t allocations = 0;

void* counted(size_t bytes) {
  ++allocations;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return counted(bytes); }
void* operator new[](size_t bytes) { return counted(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

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
    const size_t before = allocations;
    for (int step = 0; step < 3; ++step) model.forward().build(sequences);
    EXPECT_EQ(allocations, before);
  }
}

}  // namespace
}  // namespace ember::testing
