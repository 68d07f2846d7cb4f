// KV layout: grouping of layers, the layout's identity, and packing of short blocks.
#include "store/kv_layout.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/check.h"

namespace ember {
namespace {

constexpr size_t kTargetGroupBytes = 512u << 10;

uint32_t layers_near_target(uint32_t layers, size_t layer_bytes) {
  size_t fitting = (kTargetGroupBytes + layer_bytes / 2) / layer_bytes;
  return static_cast<uint32_t>(std::clamp<size_t>(fitting, 1, layers));
}

// Tag, length and value: no two fields can be confused, whatever they hold.
template <typename T>
void append_field(std::string& out, std::string_view tag, const T& value) {
  append_value(out, static_cast<uint16_t>(tag.size()));
  out.append(tag);
  append_value(out, static_cast<uint16_t>(sizeof value));
  append_value(out, value);
}

}  // namespace

KvLayout::KvLayout(uint32_t layers, uint32_t block_tokens, Stream stream, uint32_t layers_per_group)
    : layers_(layers), block_tokens_(block_tokens), stream_(stream) {
  EMBER_CHECK(layers > 0 && block_tokens > 0 && stream.row_bytes() > 0, "an empty KV layout");
  layers_per_group_ = layers_per_group == 0 ? layers_near_target(layers, layer_bytes())
                                            : std::min(layers_per_group, layers);
  for (uint32_t first = 0; first < layers; first += layers_per_group_) {
    uint32_t count = std::min(layers_per_group_, layers - first);
    groups_.push_back({first, count, layer_offset(first), layer_bytes() * count});
  }
}

std::string KvLayout::identity() const {
  std::string out;
  append_field(out, "layers", layers_);
  append_field(out, "block_tokens", block_tokens_);
  append_field(out, "stream_kind", stream_.kind);
  append_field(out, "stream_lifetime", stream_.lifetime);
  append_field(out, "stream_dtype", stream_.dtype);
  append_field(out, "stream_scale_rule", stream_.scale_rule);
  append_field(out, "stream_tokens_per_row", stream_.tokens_per_row);
  append_field(out, "stream_row_values", stream_.row_values);
  return out;
}

void gather_group(const KvLayout& layout, uint32_t group, uint32_t tokens, const std::byte* slot,
                  std::byte* packed) {
  EMBER_CHECK(tokens <= layout.block_tokens(), "more tokens than a block holds");
  const LayerGroup& layers = layout.group(group);
  size_t row_run = tokens * layout.row_bytes();
  for (uint32_t i = 0; i < layers.layers; ++i) {
    std::memcpy(packed + i * row_run, slot + layers.offset + i * layout.layer_bytes(), row_run);
  }
}

void scatter_layers(const KvLayout& layout, uint32_t first_layer, uint32_t layers, uint32_t tokens,
                    const std::byte* packed, std::byte* slot) {
  EMBER_CHECK(tokens <= layout.block_tokens(), "more tokens than a block holds");
  size_t row_run = tokens * layout.row_bytes();
  for (uint32_t i = 0; i < layers; ++i) {
    std::memcpy(slot + layout.layer_offset(first_layer + i), packed + i * row_run, row_run);
  }
}

}  // namespace ember
