// The leaf-LRU shadow.
#include "prefix_index/leaf_lru.h"

#include <algorithm>

namespace ember {

size_t LeafLruShadow::request(std::span<const ShadowId> chain, std::vector<ShadowId>* changed) {
  size_t hits = 0;
  while (hits < chain.size() && holds(chain[hits])) ++hits;
  // From the leaf up, so that of one request the deepest goes first. What no room can be made for
  // is the end of a chain longer than all of the capacity.
  const size_t kept = std::min(chain.size(), std::max(capacity_, hits));
  for (size_t i = kept; i-- > 0;) {
    if (const Table::Ref held = table_.find(chain[i]); held != Table::kNone) {
      table_.move(held, 0);
      continue;
    }
    table_.add(chain[i], 0);
    if (changed != nullptr) changed->push_back(chain[i]);
  }
  shrink(capacity_, changed);
  return hits;
}

void LeafLruShadow::extend(ShadowId parent, ShadowId block, std::vector<ShadowId>* changed) {
  const Table::Ref before = table_.find(parent);
  if (before == Table::kNone) return;  // a full shadow let the chain's end go
  Table::Ref held = table_.find(block);
  if (held == before) return;
  if (held == Table::kNone) {
    held = table_.add(block, 0);
    if (changed != nullptr) changed->push_back(block);
  }
  table_.move_behind(held, before);
  shrink(capacity_, changed);
}

void LeafLruShadow::recall(ShadowId block) {
  if (size() < capacity_ && !holds(block)) table_.add_oldest(block, 0);
}

void LeafLruShadow::set_capacity(size_t capacity, std::vector<ShadowId>* changed) {
  capacity_ = capacity;
  shrink(capacity_, changed);
}

void LeafLruShadow::shrink(size_t capacity, std::vector<ShadowId>* changed) {
  while (size() > capacity) {
    const Table::Ref gone = table_.oldest(0);
    if (changed != nullptr) changed->push_back(table_.at(gone).id);
    table_.remove(gone);
  }
}

}  // namespace ember
