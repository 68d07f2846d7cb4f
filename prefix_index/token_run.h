// Token run: how far two runs of token ids agree, and which comes first.
//
// Journey    tokens -> [token_run] -> radix_index
// Invariant  reads no token past the shorter run
// Threads    any
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "prefix_index/token.h"

namespace ember {

// Tokens that agree from the front on.
inline size_t agreeing_tokens(TokenSpan a, TokenSpan b) {
  constexpr size_t kStride = 8;  // a stride is compared in one or two vector instructions
  const size_t n = std::min(a.size(), b.size());
  if (n == 0) return 0;  // an empty run may have no address, which memcmp must not see
  // Nearly always all agree: one memcmp tells so at the speed of memory.
  if (std::memcmp(a.data(), b.data(), n * sizeof(TokenId)) == 0) return n;
  size_t at = 0;
  while (at + kStride <= n &&
         std::memcmp(a.data() + at, b.data() + at, kStride * sizeof(TokenId)) == 0) {
    at += kStride;
  }
  while (a[at] == b[at]) ++at;
  return at;
}

inline bool same_tokens(TokenSpan a, TokenSpan b) {
  return a.size() == b.size() && agreeing_tokens(a, b) == a.size();
}

// Token order, a run before those that extend it: whether `a` is `b` or comes before it.
inline bool not_after(TokenSpan a, TokenSpan b) {
  const size_t agree = agreeing_tokens(a, b);
  if (agree == a.size()) return true;
  return agree < b.size() && a[agree] < b[agree];
}

}  // namespace ember
