// Row turn: exponents from rows of tokens to rows of channels and back, the AVX2 level's.
//
// Journey    row_code -> [row_turn]
// Invariant  the same bytes as the plain level's split and merge
// Threads    any; no state
#pragma once

#include <cstddef>
#include <cstdint>

namespace ember {

// Shapes: as RowCode::split and RowCode::merge (store/codec/row_code.h).
void avx2_split(const std::byte* raw, size_t tokens, size_t channels, uint8_t* exponents,
                uint8_t* rest);
void avx2_merge(const uint8_t* exponents, const uint8_t* rest, size_t tokens, size_t channels,
                std::byte* raw);

}  // namespace ember
