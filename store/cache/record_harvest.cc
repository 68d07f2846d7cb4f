// The gathered records, and the walk from each parent to its children.
#include "store/cache/record_harvest.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <span>
#include <utility>

#include "base/bytes.h"

namespace ember {
namespace {

constexpr uint32_t kNone = RecordHarvest::kNone;
constexpr uint32_t kTableAhead = 32;  // records: their place in the table, and then their key
constexpr uint32_t kKeyAhead = 16;

// The first bytes of a hash as a number that goes up as hashes do: records come in that order.
uint64_t leading(const BlockHash& hash) {
  return __builtin_bswap64(load_unaligned<uint64_t>(
      reinterpret_cast<const char*>(hash.bytes.data())));
}

// The trees among the records of a harvest, as numbers alone.
class Families {
 public:
  explicit Families(const RecordHarvest& harvest)
      : harvest_(harvest), links_(harvest.end()) {}

  // Children stand beside their siblings; records whose parent is not here are the roots.
  void link() {
    hash_all();
    for (uint32_t number = 0; number < harvest_.end(); ++number) {
      prefetch_for(number);
      if (!harvest_.has(number)) continue;
      const RecordHarvest::Row& row = harvest_.row(number);
      const uint32_t parent = row.position == 0 ? kNone : find(row.parent);
      const bool root = parent == kNone || parent == number;
      uint32_t& head = root ? roots_ : links_[parent].first_child;
      links_[number].next_sibling = std::exchange(head, number);
    }
    std::vector<uint32_t>().swap(heads_);
    std::vector<Key>().swap(keys_);
  }

  uint32_t roots() const { return roots_; }
  uint32_t first_child(uint32_t number) const { return links_[number].first_child; }
  uint32_t next_sibling(uint32_t number) const { return links_[number].next_sibling; }
  bool only_child(uint32_t child) const { return next_sibling(child) == kNone; }
  // Asks for the memory that going on from a record will need.
  void prefetch(uint32_t number) const { __builtin_prefetch(&links_[number]); }

 private:
  struct Links {
    uint32_t first_child = kNone;
    uint32_t next_sibling = kNone;
  };
  // Of a record's hash, apart from the rows: these few megabytes stay in the processor's cache.
  struct Key {
    uint64_t leading = 0;
    uint32_t next_in_chain = kNone;
  };
  bool has(uint32_t number) const { return number < harvest_.end() && harvest_.has(number); }
  size_t bucket_of(const BlockHash& hash) const { return leading(hash) >> shift_; }
  // What the parents of the records to come need, so that none is waited for.
  void prefetch_for(uint32_t number) const {
    if (has(number + kTableAhead)) {
      __builtin_prefetch(&heads_[bucket_of(harvest_.row(number + kTableAhead).parent)]);
    }
    if (!has(number + kKeyAhead)) return;
    const uint32_t head = heads_[bucket_of(harvest_.row(number + kKeyAhead).parent)];
    if (head == kNone) return;
    __builtin_prefetch(&keys_[head]);
    prefetch(head);
  }
  // As records come by their hashes, the table is written from its front to its end.
  void hash_all() {
    const size_t buckets = std::bit_ceil(2 * harvest_.size() + 2);
    shift_ = 64 - static_cast<unsigned>(std::bit_width(buckets - 1));
    heads_.assign(buckets, kNone);
    keys_.assign(harvest_.end(), Key{});
    for (uint32_t number = 0; number < harvest_.end(); ++number) {
      if (!harvest_.has(number)) continue;
      const uint64_t key = leading(harvest_.row(number).hash);
      keys_[number] = {key, std::exchange(heads_[key >> shift_], number)};
    }
  }
  uint32_t find(const BlockHash& hash) const {
    uint32_t number = heads_[bucket_of(hash)];
    const uint64_t wanted = leading(hash);
    while (number != kNone && keys_[number].leading != wanted) {
      number = keys_[number].next_in_chain;
    }
    return number;
  }

  const RecordHarvest& harvest_;
  unsigned shift_ = 63;
  std::vector<uint32_t> heads_;  // by the first bits of the hash
  std::vector<Key> keys_;        // by number
  std::vector<Links> links_;  // by number
  uint32_t roots_ = kNone;
};

// A sibling with what mostly decides: its first two token ids, as the index orders them.
struct Sibling {
  uint64_t first_tokens = 0;
  uint32_t number = 0;
};

uint64_t first_tokens_of(TokenSpan tokens) {
  const auto ordered = [](TokenId token) {
    return static_cast<uint32_t>(token) ^ 0x80000000u;  // token ids are signed
  };
  const uint64_t second = tokens.size() > 1 ? ordered(tokens[1]) : 0;
  return (uint64_t{ordered(tokens[0])} << 32) | second;
}

// In the order of the index, so that each is put behind those that are there.
void sort_siblings(const RecordHarvest& harvest, std::span<Sibling> siblings) {
  std::sort(siblings.begin(), siblings.end(), [&](const Sibling& a, const Sibling& b) {
    if (a.first_tokens != b.first_tokens) return a.first_tokens < b.first_tokens;
    const TokenSpan left = harvest.tokens(a.number);
    const TokenSpan right = harvest.tokens(b.number);
    return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end());
  });
}

}  // namespace

void RecordHarvest::add(const BlockRecord& record, const TouchRecord& touch) {
  if (chunks_.empty() || chunks_.back().rows.size() == kChunk) {
    Chunk& chunk = chunks_.emplace_back();
    chunk.rows.reserve(kChunk);  // never to be moved
    chunk.tokens.reserve(size_t{kChunk} * block_tokens_);
  }
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  Chunk& chunk = chunks_.back();
  chunk.rows.push_back({
      .hash = record.hash,
      .parent = record.parent,
      .numerics_build = record.numerics_build,
      .last_use_unix_us = touch.last_use_unix_us,
      .hits = touch.hits,
      .position = record.position,
      .epoch = record.epoch,
      .stored_bytes = static_cast<uint32_t>(std::min(record.stored_bytes(), kMost)),
      .scope = name_number(record.scope),
      .publisher = name_number(record.publisher)});
  chunk.tokens.insert(chunk.tokens.end(), record.tokens.begin(), record.tokens.end());
  ++size_;
}

uint32_t RecordHarvest::name_number(const std::string& name) {
  if (name.empty() && empty_name_ != kNone) return empty_name_;
  if (!names_.empty() && names_[last_name_] == name) return last_name_;
  const auto next = static_cast<uint32_t>(names_.size());
  const auto [known, added] = name_numbers_.try_emplace(name, next);
  if (added) names_.push_back(name);
  (name.empty() ? empty_name_ : last_name_) = known->second;
  return known->second;
}

void RecordHarvest::append(RecordHarvest&& other) {
  std::vector<uint32_t> numbers;
  for (const std::string& name : other.names_) numbers.push_back(name_number(name));
  bool same_numbers = true;
  for (uint32_t i = 0; i < numbers.size(); ++i) same_numbers = same_numbers && numbers[i] == i;
  for (Chunk& chunk : other.chunks_) {
    if (!same_numbers) {
      for (Row& row : chunk.rows) {
        row.scope = numbers[row.scope];
        row.publisher = numbers[row.publisher];
      }
    }
    chunks_.push_back(std::move(chunk));
  }
  size_ += std::exchange(other.size_, 0);
  other.chunks_.clear();
}

void RecordHarvest::prefetch(uint32_t number) const {
  const char* row = reinterpret_cast<const char*>(&this->row(number));
  __builtin_prefetch(row);
  __builtin_prefetch(row + 64);
  const TokenSpan ids = tokens(number);
  const char* bytes = reinterpret_cast<const char*>(ids.data());
  for (size_t at = 0; at < ids.size_bytes(); at += 64) __builtin_prefetch(bytes + at);
}

RecordHarvest::Order RecordHarvest::parents_first() const {
  Families families(*this);
  families.link();
  Order order;
  order.places.reserve(size_);
  struct Open {
    uint32_t number = 0;
    uint32_t parent = kNone;
  };
  std::vector<Open> open;  // the next one is at the back
  std::vector<Sibling> siblings;
  const auto open_all = [&](uint32_t first, uint32_t parent) {
    siblings.clear();
    for (uint32_t child = first; child != kNone; child = families.next_sibling(child)) {
      siblings.push_back({0, child});
      __builtin_prefetch(tokens(child).data());
    }
    for (Sibling& one : siblings) one.first_tokens = first_tokens_of(tokens(one.number));
    sort_siblings(*this, siblings);
    for (size_t i = siblings.size(); i-- > 0;) {
      open.push_back({siblings[i].number, parent});
      families.prefetch(siblings[i].number);
    }
  };
  open_all(families.roots(), kNone);
  bool begins_run = true;
  while (!open.empty()) {
    const Open next = open.back();
    open.pop_back();
    order.places.push_back({next.number, next.parent, 0, begins_run});
    const uint32_t child = families.first_child(next.number);
    begins_run = child == kNone || !families.only_child(child);
    if (child == kNone) ++order.leaves;
    if (begins_run) {
      open_all(child, next.number);
    } else {
      open.push_back({child, next.number});
    }
  }
  for (size_t at = order.places.size(); at-- > 1;) {
    if (!order.places[at].begins_run) order.places[at - 1].run = order.places[at].run + 1;
  }
  return order;
}

}  // namespace ember
