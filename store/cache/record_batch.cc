// Gathers the records of a batch.
#include "store/cache/record_batch.h"

namespace ember {

void RecordBatch::gather(const RecordHarvest& harvest, const RecordHarvest::Order& order,
                         size_t count) {
  constexpr size_t kPrefetchAhead = 8;
  block_tokens = harvest.block_tokens();
  rows.reserve(count);
  token_ids.reserve(count * block_tokens);
  for (size_t at = first; at < first + count; ++at) {
    const size_t ahead = at + kPrefetchAhead;
    if (ahead < order.places.size()) harvest.prefetch(order.places[ahead].number);
    const uint32_t number = order.places[at].number;
    rows.push_back(harvest.row(number));
    const TokenSpan tokens = harvest.tokens(number);
    token_ids.insert(token_ids.end(), tokens.begin(), tokens.end());
  }
}

}  // namespace ember
