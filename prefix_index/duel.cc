// Scores, and whose turn it is.
#include "prefix_index/duel.h"

#include <array>
#include <utility>

namespace ember {
namespace {

constexpr double kDecay = 0.995;  // a request
constexpr double kLead = 1.01;    // that a challenger needs
constexpr std::array<std::pair<EvictionPolicy, std::string_view>, 3> kNames = {{
    {EvictionPolicy::kAuto, "auto"},
    {EvictionPolicy::kLeafLru, "leaf_lru"},
    {EvictionPolicy::kS3Fifo, "s3_fifo"},
}};

}  // namespace

std::string_view eviction_policy_name(EvictionPolicy policy) {
  return kNames[static_cast<size_t>(policy)].second;
}

std::optional<EvictionPolicy> eviction_policy_of(std::string_view name) {
  for (const auto& [policy, known] : kNames) {
    if (known == name) return policy;
  }
  return std::nullopt;
}

Duel::Duel(EvictionPolicy policy, size_t capacity)
    : policy_(policy),
      leader_(policy == EvictionPolicy::kS3Fifo ? policy : EvictionPolicy::kLeafLru),
      capacity_(capacity),
      lru_(capacity),
      s3_(capacity) {}

Duel::Change Duel::request(std::span<const ShadowId> chain) {
  changed_.clear();
  ++requests_;
  size_t lru_hits = 0;
  size_t s3_hits = 0;
  if (shadows_lru()) lru_hits = lru_.request(chain, changes_of(EvictionPolicy::kLeafLru));
  if (shadows_s3()) s3_hits = s3_.request(chain, changes_of(EvictionPolicy::kS3Fifo));
  scores_.leaf_lru = scores_.leaf_lru * kDecay + static_cast<double>(lru_hits);
  scores_.s3_fifo = scores_.s3_fifo * kDecay + static_cast<double>(s3_hits);
  bool changes = false;
  if (policy_ == EvictionPolicy::kAuto) {
    const bool lru_leads = leader_ == EvictionPolicy::kLeafLru;
    const double own = lru_leads ? scores_.leaf_lru : scores_.s3_fifo;
    const double other = lru_leads ? scores_.s3_fifo : scores_.leaf_lru;
    changes = other > kLead * own;
    if (changes) {
      leader_ = lru_leads ? EvictionPolicy::kS3Fifo : EvictionPolicy::kLeafLru;
      ++switches_;
    }
  }
  return {changed_, changes};
}

Duel::Change Duel::extend(ShadowId parent, ShadowId block) {
  changed_.clear();
  if (shadows_lru()) lru_.extend(parent, block, changes_of(EvictionPolicy::kLeafLru));
  if (shadows_s3()) s3_.extend(block, changes_of(EvictionPolicy::kS3Fifo));
  return {changed_, false};
}

Duel::Change Duel::set_capacity(size_t capacity) {
  changed_.clear();
  capacity_ = capacity;
  if (shadows_lru()) lru_.set_capacity(capacity, changes_of(EvictionPolicy::kLeafLru));
  if (shadows_s3()) s3_.set_capacity(capacity, changes_of(EvictionPolicy::kS3Fifo));
  return {changed_, false};
}

void Duel::recall(ShadowId block, bool had_hits) {
  if (shadows_lru()) lru_.recall(block);
  if (shadows_s3()) s3_.recall(block, had_hits);
}

void Duel::recall_scores(const Scores& scores, EvictionPolicy leader) {
  scores_ = scores;
  if (policy_ == EvictionPolicy::kAuto) leader_ = leader;
}

void Duel::begin_walk() {
  walked_ = 0;
  lru_.begin_walk();
}

bool Duel::walk(size_t most, std::vector<ShadowMark>& marks) {
  while (walked_ <= S3FifoShadow::kQueueCount) {
    for (; most > 0; --most) {
      std::optional<ShadowMark> next = walked_ == 0 ? lru_.walk() : s3_.walk();
      if (!next) break;
      // One number for all queues: 0 is leaf-LRU's.
      next->queue = static_cast<uint8_t>(walked_);
      marks.push_back(*next);
    }
    if (most == 0) return false;
    if (++walked_ <= S3FifoShadow::kQueueCount) s3_.begin_walk(walked_ - 1);
  }
  return true;
}

void Duel::recall(const ShadowMark& mark) {
  if (mark.queue == 0) {
    if (shadows_lru()) lru_.recall(mark.id);
  } else if (shadows_s3()) {
    s3_.recall({mark.id, static_cast<uint8_t>(mark.queue - 1), mark.count});
  }
}

bool Duel::holds(ShadowId block) const {
  if (policy_ == EvictionPolicy::kLeafLru) return false;
  return leader_ == EvictionPolicy::kLeafLru ? lru_.holds(block) : s3_.holds(block);
}

size_t Duel::memory_bytes() const {
  return lru_.memory_bytes() + s3_.memory_bytes() + changed_.capacity() * sizeof(ShadowId);
}

}  // namespace ember
