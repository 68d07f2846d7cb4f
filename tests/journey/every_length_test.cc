// E0, E1 and E2 for a tail of every length, from every tier. Slow.
#include "tests/journey/boundary.h"
#include "tests/support/temp_folder.h"

namespace ember {
namespace {

TEST(EveryLengthTest, EveryTailFromEveryTier) {
  const TempFolder folder;
  Rig rig({.model_path = tiny_model_path(), .store_path = folder / "store", .context_tokens = 256});
  const std::vector<std::vector<Tier>> losses = {{}, {Tier::kDevice}, {Tier::kDevice, Tier::kHost}};
  uint64_t seed = 1000;
  for (const auto& tiers : losses) {
    for (size_t length = 1; length <= 129; ++length) {
      expect_exact_after_loss(rig, length, 3, tiers, ++seed);
    }
  }
}

}  // namespace
}  // namespace ember
