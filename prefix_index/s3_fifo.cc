// The S3-FIFO shadow.
#include "prefix_index/s3_fifo.h"

#include <algorithm>

namespace ember {
namespace {

constexpr uint8_t kMostCounted = 3;

}  // namespace

size_t S3FifoShadow::request(std::span<const ShadowId> chain, std::vector<ShadowId>* changed) {
  size_t hits = 0;
  while (hits < chain.size() && holds(chain[hits])) ++hits;
  // All present blocks are counted before the first missing one can push any of them out.
  for (ShadowId block : chain) {
    if (!holds(block)) continue;
    Table::Entry& held = table_.at(table_.find(block));
    held.count = std::min<uint8_t>(kMostCounted, static_cast<uint8_t>(held.count + 1));
  }
  std::vector<ShadowId> missing;
  for (ShadowId block : chain.subspan(hits)) {
    if (!holds(block)) missing.push_back(block);
  }
  for (auto block = missing.rbegin(); block != missing.rend(); ++block) {
    if (!holds(*block)) enter(*block, changed);
  }
  return hits;
}

void S3FifoShadow::extend(ShadowId block, std::vector<ShadowId>* changed) {
  if (!holds(block)) enter(block, changed);
}

void S3FifoShadow::enter(ShadowId block, std::vector<ShadowId>* changed) {
  if (capacity_ == 0) return;
  while (size() >= capacity_) evict_one(changed);
  // Looked up only now: making room may have forgotten the ghost, or made it one.
  if (const Table::Ref ghost = table_.find(block); ghost != Table::kNone) {
    table_.move(ghost, kMain);
    table_.at(ghost).count = 0;
  } else {
    table_.add(block, kSmall);
  }
  if (changed != nullptr) changed->push_back(block);
}

void S3FifoShadow::evict_one(std::vector<ShadowId>* changed) {
  while (true) {
    const bool from_small = table_.size(kSmall) >= std::max<size_t>(1, small_capacity()) ||
                            table_.size(kMain) == 0;
    const Table::Ref ref = table_.oldest(from_small ? kSmall : kMain);
    Table::Entry& entry = table_.at(ref);
    if (entry.count > 0) {
      entry.count = from_small ? uint8_t{0} : static_cast<uint8_t>(entry.count - 1);
      table_.move(ref, kMain);
      continue;
    }
    if (changed != nullptr) changed->push_back(entry.id);
    if (from_small) {
      table_.move(ref, kGhost);
      trim_ghosts();
    } else {
      table_.remove(ref);
    }
    return;
  }
}

void S3FifoShadow::trim_ghosts() {
  while (table_.size(kGhost) > ghost_capacity()) {
    table_.remove(table_.oldest(kGhost));
  }
}

void S3FifoShadow::recall(ShadowId block, bool had_hits) {
  if (size() >= capacity_ || holds(block)) return;
  if (const Table::Ref ghost = table_.find(block); ghost != Table::kNone) table_.remove(ghost);
  table_.add_oldest(block, had_hits ? kMain : kSmall);
}

void S3FifoShadow::recall(const ShadowMark& mark) {
  if (mark.queue >= kQueueCount || table_.find(mark.id) != Table::kNone) return;
  const bool room = mark.queue == kGhost ? ghosts() < ghost_capacity() : size() < capacity_;
  if (!room) return;
  table_.at(table_.add_oldest(mark.id, mark.queue)).count = std::min(mark.count, kMostCounted);
}

void S3FifoShadow::set_capacity(size_t capacity, std::vector<ShadowId>* changed) {
  capacity_ = capacity;
  while (size() > capacity_) evict_one(changed);
  trim_ghosts();
}

}  // namespace ember
