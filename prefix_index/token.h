// Token: ids as the tokenizer makes them and the kernels read them.
//
// Journey    tokenizer -> [token] -> block_hash
#pragma once

#include <cstdint>
#include <span>

namespace ember {

using TokenId = int32_t;
using TokenSpan = std::span<const TokenId>;

// Tokens of a full block unless a namespace says otherwise.
inline constexpr uint32_t kDefaultBlockTokens = 64;

}  // namespace ember
