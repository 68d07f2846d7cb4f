// Latent attention: causal softmax attention on cached MLA rows, in the absorbed form (on latents)
// or the naive form (keys and values expanded from latents, tile by tile).
//
// Journey    device_pool -> [latent_attention] -> model forward: the one reader of restored rows
// Invariant  a query walks the rows in absolute tiles of 64 tokens from position 0, merged in
//            ascending order; its result depends neither on the other queries of the step nor on
//            the number of workers. Rows beyond a query's position are never read for it in effect,
//            and rows beyond the last position of the step's queries are never read at all.
// Source     DeepSeek-V2 paper, section 2.1; FlashAttention-2 for the running softmax
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "kernels/latent_pack.h"
#include "kernels/matmul.h"

namespace ember {

class CpuTeam;

enum class AttentionForm : uint8_t { kAbsorb = 1, kNaive = 2 };

struct LatentAttentionParams {
  AttentionForm form = AttentionForm::kAbsorb;
  size_t rows = 0;        // queries; those of one sequence are adjacent and ascending in position
  size_t heads = 0;       // H
  size_t nope_dim = 0;    // N (naive form)
  size_t rope_dim = 0;    // R
  size_t value_dim = 0;   // V (naive form)
  size_t latent_dim = 0;  // C
  float scale = 1;        // softmax scale, all factors included
  // Absorb: q_latent [rows, H, C] = W_UK^T q_nope. Naive: null.
  const void* q_latent = nullptr;
  // [rows, H, N + R], rotated; absorb reads only the last R of a head.
  const void* q = nullptr;
  DType q_dtype = DType::kBf16;  // of q_latent and q
  // Naive: [H, N + V, C], head h's first N rows make its keys, the next V its values. Absorb: null.
  const void* w_kv_b = nullptr;
  DType w_dtype = DType::kBf16;
  const int32_t* positions = nullptr;  // [rows]
  const int32_t* sequences = nullptr;  // [rows]: row of cache.block_tables
  LatentCacheView cache;
  void* out = nullptr;  // absorb: [rows, H, C] (before W_UV); naive: [rows, H, V]
  DType out_dtype = DType::kBf16;
};

// The naive form expands rows with `matmul`.
void latent_attention_cpu(const LatentAttentionParams& params, CpuTeam& team,
                          MatmulFunction matmul);

// The obviously right form, single-threaded, in double: for tests.
void latent_attention_reference(const LatentAttentionParams& params);

}  // namespace ember
