// Copy lists between slots, and the poison that marks bytes not yet proven.
#include "store/cache/slot_copies.h"

#include <cstring>

namespace ember {

void append_group_copies(const KvLayout& layout, uint32_t group, uint32_t tokens,
                         const std::byte* from, std::byte* to, std::vector<Copy>& copies) {
  const LayerGroup& layers = layout.group(group);
  if (tokens == layout.block_tokens()) {
    copies.push_back({from + layers.offset, to + layers.offset, layers.bytes});
    return;
  }
  for (uint32_t i = 0; i < layers.layers; ++i) {
    const size_t offset = layout.layer_offset(layers.first_layer + i);
    copies.push_back({from + offset, to + offset, tokens * layout.row_bytes()});
  }
}

void append_poison_copies(const KvLayout& layout, uint32_t tokens, const std::byte* poison_row,
                          std::byte* to, std::vector<Copy>& copies) {
  for (uint32_t layer = 0; layer < layout.layers(); ++layer) {
    std::byte* rows = to + layout.layer_offset(layer);
    copies.push_back({poison_row, rows, layout.row_bytes()});
    if (tokens < 2) continue;
    copies.push_back({poison_row, rows + (tokens - 1) * layout.row_bytes(), layout.row_bytes()});
  }
}

void poison_slot(const KvLayout& layout, uint32_t tokens, std::byte* slot) {
  for (uint32_t layer = 0; layer < layout.layers(); ++layer) {
    std::byte* rows = slot + layout.layer_offset(layer);
    std::memset(rows, static_cast<int>(kPoison), layout.row_bytes());
    std::memset(rows + (tokens - 1) * layout.row_bytes(), static_cast<int>(kPoison),
                layout.row_bytes());
  }
}

}  // namespace ember
