// KV layout: which bytes a block holds, by stream, layer and token; and how they are grouped.
//
// Journey    model config -> [kv_layout] -> device_pool, host_tier, record
// Invariant  one byte order on every device and on disk: block-major, then layer, then token
// Not here   who reads or writes those bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"

namespace ember {

// What a stream's rows are. Numbers are stored; those not named here are skippable.
enum class StreamKind : uint16_t {
  kMlaRow = 1,    // [latent after its norm | rotated RoPE key], values of one dtype
  kMlaFp8Row = 2  // [e4m3 of the latent | fp32 scale of each 128 of them | bf16 RoPE key], as bytes
};
enum class StreamLifetime : uint8_t { kHistory = 1, kState = 2 };
// kLargest: the largest size of the values that share a scale becomes e4m3's largest, 448.
enum class ScaleRule : uint8_t { kNone = 0, kLargest = 1 };

struct Stream {
  StreamKind kind = StreamKind::kMlaRow;
  StreamLifetime lifetime = StreamLifetime::kHistory;
  DType dtype = DType::kBf16;
  ScaleRule scale_rule = ScaleRule::kNone;
  uint16_t tokens_per_row = 1;
  uint32_t row_values = 0;  // of dtype; of kMlaFp8Row: its bytes
  uint32_t row_bytes() const { return row_values * static_cast<uint32_t>(dtype_bytes(dtype)); }
  friend bool operator==(const Stream&, const Stream&) = default;
};

// Some successive layers of a block: the unit of storing, checking, copying and becoming readable.
struct LayerGroup {
  uint32_t first_layer = 0;
  uint32_t layers = 0;
  size_t offset = 0;  // of its first byte in the block
  size_t bytes = 0;   // of a full block
};

class KvLayout {
 public:
  KvLayout() = default;
  // One MLA stream in every layer. layers_per_group 0: chosen so that a group of a full block holds
  // about 512 KiB.
  KvLayout(uint32_t layers, uint32_t block_tokens, Stream stream, uint32_t layers_per_group = 0);

  uint32_t layers() const { return layers_; }
  uint32_t block_tokens() const { return block_tokens_; }
  const Stream& stream() const { return stream_; }
  size_t row_bytes() const { return stream_.row_bytes(); }
  size_t layer_bytes() const { return row_bytes() * block_tokens_; }
  size_t block_bytes() const { return layer_bytes() * layers_; }
  size_t layer_offset(uint32_t layer) const { return layer_bytes() * layer; }
  size_t token_bytes() const { return row_bytes() * layers_; }

  uint32_t group_count() const { return static_cast<uint32_t>(groups_.size()); }
  const LayerGroup& group(uint32_t index) const { return groups_[index]; }
  uint32_t layers_per_group() const { return layers_per_group_; }
  // Raw bytes of a group when the block has only `tokens` tokens (packed, no gaps).
  size_t group_bytes(uint32_t index, uint32_t tokens) const {
    return groups_[index].layers * tokens * row_bytes();
  }

  // Tagged, length-framed description: part of the namespace. Does not name the grouping.
  std::string identity() const;

 private:
  uint32_t layers_ = 0;
  uint32_t block_tokens_ = 0;
  uint32_t layers_per_group_ = 0;
  Stream stream_;
  std::vector<LayerGroup> groups_;
};

// Between a slot's spacing (layer_bytes apart) and packed bytes of `tokens` rows a layer. `slot` is
// the first byte of the block. A record may have been grouped otherwise, so scatter takes layers.
void gather_group(const KvLayout& layout, uint32_t group, uint32_t tokens, const std::byte* slot,
                  std::byte* packed);
void scatter_layers(const KvLayout& layout, uint32_t first_layer, uint32_t layers, uint32_t tokens,
                    const std::byte* packed, std::byte* slot);

}  // namespace ember
