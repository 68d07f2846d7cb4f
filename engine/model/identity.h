// Identity: when may a latent be reused? The namespace it belongs to, and the build that made it.
//
// Journey    config + fingerprint + layout -> [identity] -> block_hash, records
// Invariant  every field is tagged and length-framed; nothing of the instance is in it (context
//            size, batch, slots, threads, host name)
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "engine/checkpoint/model_config.h"
#include "engine/model/attention_mode.h"
#include "engine/model/weights.h"
#include "kernels/device.h"
#include "prefix_index/block_hash.h"
#include "store/kv_layout.h"

namespace ember {

// Which bits come out of this program: the kernels that this machine takes, and the mode.
struct NumericsBuild {
  std::string text;   // "cpu-avx2-1/auto"
  uint64_t hash = 0;  // as records name it
};
NumericsBuild numerics_build(const Device& device, AttentionMode mode);

struct Identity {
  NamespaceHash name_space;
  uint64_t numerics_build = 0;
  std::string numerics_build_text;
  std::vector<std::pair<std::string, std::string>> fields;  // of the namespace, to explain a miss
};

// `cache_dtype`: kBf16, kF32, or kF8E4M3 for the rows of kernels/latent_row.h.
KvLayout model_kv_layout(const ModelConfig& config, DType cache_dtype, uint32_t block_tokens,
                         uint32_t layers_per_group);

Identity make_identity(const ModelConfig& config, const BlockHash& weights_fingerprint,
                       const KvLayout& layout, const Device& device, AttentionMode mode,
                       WeightForm weight_form = WeightForm::kStored);

}  // namespace ember
