// Scope: for whom a block is known: for all, or for one tenant alone.
//
// Journey    a request's tenant -> [scope] -> radix_index
// Invariant  a chain of blocks may pass from `shared` to one tenant's scope, once, at a block
//            boundary, and never back
// Not here   the names behind the numbers (store/cache/scope_book.h)
#pragma once

#include <cstdint>

namespace ember {

// Given out densely by the caller: a number of a scope costs a place in a list.
enum class ScopeId : uint32_t {};
inline constexpr ScopeId kSharedScope{0};
// A tenant of whom nothing is known yet; its prompts may match shared blocks.
inline constexpr ScopeId kNoScope{0xffffffffu};

}  // namespace ember
