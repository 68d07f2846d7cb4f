// Latent samples: layer groups of real and made latents, packed as a store holds them.
//
// Journey    model, text -> [latent_samples] -> codec_bench
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/kv_layout.h"

namespace ember {

struct LatentSample {
  std::string name;
  DType dtype = DType::kBf16;
  uint32_t tokens = 0;        // of a block
  uint32_t row_values = 0;    // of a token in one layer
  uint32_t latent_values = 0;  // of them before the RoPE part
  std::vector<std::vector<std::byte>> groups;

  size_t raw_bytes() const;
};

// Runs the model on `text` (or, where it has no tokenizer, on `token_count` random tokens) into a
// store in `folder` and reads the groups of every full block back.
Result<LatentSample> model_latents(const std::string& model, const std::string& text,
                                   size_t token_count, const std::string& folder);

// A random model of DeepSeek-V2-Lite's dimensions, two layers of it, made in `folder`.
Result<LatentSample> random_v2_lite_latents(const std::string& config_folder,
                                            const std::string& folder);

enum class SyntheticLatents { kLogNormalChannels, kHeavyTails, kFp8Rows };
// V2-Lite rows (512 + 64 values), `groups` groups of `layers` layers and 64 tokens.
LatentSample synthetic_latents(SyntheticLatents kind, uint32_t groups, uint32_t layers,
                               uint64_t seed);

}  // namespace ember
