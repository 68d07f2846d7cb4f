// Attention mode: which form of attention a request's tokens are computed in.
//
// Journey    options -> [attention_mode] -> scheduler, identity
// Invariant  the form of a token follows from its request alone: from how many prompt tokens it had
//            to compute, never from steps, chunks or neighbours
// Threads    any; values
// Source     DeepSeek's inference code has the two forms as attn_impl
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/latent_attention.h"

namespace ember {

// kAbsorb and kNaive: one form for all tokens, so that however a latent came to be its bits are the
// same (deterministic). kAuto: long prompts naive, all else absorbed; a chain that is restored
// whole goes on as the run would have that wrote it, but computing a part of it anew may give
// other bits.
enum class AttentionMode : uint8_t { kAbsorb = 1, kNaive = 2, kAuto = 3 };

constexpr const char* attention_mode_name(AttentionMode mode) {
  if (mode == AttentionMode::kAuto) return "auto";
  return mode == AttentionMode::kAbsorb ? "absorb" : "naive";
}

// From so many prompt tokens on, which are computed together, expanding keys and values pays.
constexpr size_t kNaiveTokens = 512;

constexpr AttentionForm attention_form(AttentionMode mode, size_t prompt_tokens_to_compute,
                                       bool decode) {
  if (mode == AttentionMode::kAbsorb) return AttentionForm::kAbsorb;
  if (mode == AttentionMode::kNaive) return AttentionForm::kNaive;
  const bool naive = !decode && prompt_tokens_to_compute >= kNaiveTokens;
  return naive ? AttentionForm::kNaive : AttentionForm::kAbsorb;
}

}  // namespace ember
