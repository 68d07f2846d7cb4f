// KvLayout: grouping, identity, packing of short blocks.
#include "store/kv_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/prng.h"

namespace ember {
namespace {

Stream mla(uint32_t values, DType dtype = DType::kBf16) {
  Stream stream;
  stream.row_values = values;
  stream.dtype = dtype;
  return stream;
}

TEST(KvLayoutTest, BlockOfV2LiteHasTheSizesOfThePlan) {
  KvLayout layout(27, 64, mla(576));
  EXPECT_EQ(layout.token_bytes(), 31104u);
  EXPECT_EQ(layout.block_bytes(), 1990656u);
  EXPECT_EQ(layout.layers_per_group(), 7u);
  EXPECT_EQ(layout.group_count(), 4u);
}

TEST(KvLayoutTest, SmallBlockIsOneGroup) {
  EXPECT_EQ(KvLayout(6, 64, mla(160)).group_count(), 1u);
}

TEST(KvLayoutTest, GroupsCoverEveryLayerOnce) {
  for (uint32_t per_group : {0u, 1u, 2u, 3u, 7u, 26u, 27u, 100u}) {
    KvLayout layout(27, 64, mla(576), per_group);
    uint32_t layer = 0;
    size_t offset = 0;
    for (uint32_t g = 0; g < layout.group_count(); ++g) {
      EXPECT_EQ(layout.group(g).first_layer, layer);
      EXPECT_EQ(layout.group(g).offset, offset);
      layer += layout.group(g).layers;
      offset += layout.group(g).bytes;
    }
    EXPECT_EQ(layer, 27u);
    EXPECT_EQ(offset, layout.block_bytes());
  }
}

TEST(KvLayoutTest, IdentityNamesWhatTheBytesMeanAndNotTheGrouping) {
  KvLayout layout(4, 64, mla(160));
  EXPECT_EQ(layout.identity(), KvLayout(4, 64, mla(160), 1).identity());
  EXPECT_NE(layout.identity(), KvLayout(5, 64, mla(160)).identity());
  EXPECT_NE(layout.identity(), KvLayout(4, 32, mla(160)).identity());
  EXPECT_NE(layout.identity(), KvLayout(4, 64, mla(161)).identity());
  EXPECT_NE(layout.identity(), KvLayout(4, 64, mla(160, DType::kF32)).identity());
}

TEST(KvLayoutTest, ScatterUndoesGatherForEveryTokenCount) {
  KvLayout layout(5, 16, mla(12), 2);
  Prng prng(7);
  std::vector<std::byte> slot(layout.block_bytes());
  for (std::byte& b : slot) b = static_cast<std::byte>(prng());
  for (uint32_t tokens = 1; tokens <= 16; ++tokens) {
    std::vector<std::byte> back(slot.size(), std::byte{0xee});
    for (uint32_t g = 0; g < layout.group_count(); ++g) {
      std::vector<std::byte> packed(layout.group_bytes(g, tokens));
      gather_group(layout, g, tokens, slot.data(), packed.data());
      const LayerGroup& group = layout.group(g);
      scatter_layers(layout, group.first_layer, group.layers, tokens, packed.data(), back.data());
    }
    for (uint32_t layer = 0; layer < 5; ++layer) {
      size_t at = layout.layer_offset(layer);
      size_t used = tokens * layout.row_bytes();
      EXPECT_EQ(std::memcmp(slot.data() + at, back.data() + at, used), 0);
      EXPECT_TRUE(std::all_of(back.data() + at + used, back.data() + at + layout.layer_bytes(),
                              [](std::byte b) { return b == std::byte{0xee}; }));
    }
  }
}

}  // namespace
}  // namespace ember
