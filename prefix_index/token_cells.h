// Token cells: the token ids of each block, found by the block's number.
//
// Journey    tokens -> [token_cells] -> block_tree
// Owns       a cell of `block_tokens` ids for each block, in chunks
// Invariant  a cell never moves; a chunk whose last block went is given back
// Threads    engine thread only
//
// Blocks that enter one after another have their cells side by side, so that a long chain is
// compared as one run of memory would be. A tail, which there are few of, fills its cell in part.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "prefix_index/eviction.h"
#include "prefix_index/token.h"

namespace ember {

class TokenCells {
 public:
  explicit TokenCells(uint32_t block_tokens)
      : span_(block_tokens),
        cells_a_chunk_(std::max<size_t>(1, kChunkBytes / (block_tokens * sizeof(TokenId)))) {}

  // The cell of a block that has none.
  void put(BlockId block, TokenSpan tokens) {
    const auto number = static_cast<size_t>(block);
    if (number / cells_a_chunk_ >= chunks_.size()) chunks_.resize(number / cells_a_chunk_ + 1);
    Chunk& chunk = chunks_[number / cells_a_chunk_];
    if (chunk.used++ == 0) {
      chunk.ids = std::make_unique_for_overwrite<TokenId[]>(cells_a_chunk_ * span_);
      ++held_chunks_;
    }
    std::copy(tokens.begin(), tokens.end(), cell(block));
  }
  void remove(BlockId block) {
    Chunk& chunk = chunks_[static_cast<size_t>(block) / cells_a_chunk_];
    if (--chunk.used > 0) return;
    chunk.ids.reset();
    --held_chunks_;
  }
  // The first `count` ids of a block's cell.
  TokenSpan get(BlockId block, size_t count) const { return {cell(block), count}; }
  size_t memory_bytes() const {
    return held_chunks_ * cells_a_chunk_ * span_ * sizeof(TokenId) +
           chunks_.capacity() * sizeof(Chunk);
  }

 private:
  static constexpr size_t kChunkBytes = 16u << 10;
  struct Chunk {
    std::unique_ptr<TokenId[]> ids;
    size_t used = 0;
  };
  TokenId* cell(BlockId block) const {
    const auto number = static_cast<size_t>(block);
    return chunks_[number / cells_a_chunk_].ids.get() + number % cells_a_chunk_ * span_;
  }

  size_t span_;
  size_t cells_a_chunk_;
  std::vector<Chunk> chunks_;
  size_t held_chunks_ = 0;
};

}  // namespace ember
