// Record batch: some of the gathered records, copied together in the order in which they enter.
//
// Journey    record_harvest -> [record_batch] -> reopening
// Owns       the rows and token ids of `count` places of an order
// Invariant  what is at `i` is the record of place first + i
// Threads    one at a time: a task of the read lane gathers it, the engine thread uses it up
//
// The records of a chain lie anywhere in memory, since they were read by their hashes. A task waits
// for that memory, so that the engine thread reads what it enters from one end to the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/cache/record_harvest.h"

namespace ember {

struct RecordBatch {
  size_t first = 0;
  bool gathered = false;
  std::vector<RecordHarvest::Row> rows;
  std::vector<TokenId> token_ids;
  size_t block_tokens = 0;

  TokenSpan tokens(size_t i) const {
    return TokenSpan(token_ids).subspan(i * block_tokens, block_tokens);
  }
  void gather(const RecordHarvest& harvest, const RecordHarvest::Order& order, size_t count);
};

}  // namespace ember
