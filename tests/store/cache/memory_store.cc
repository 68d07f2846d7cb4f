// The fakes: maps under a mutex, and the order that the cache has promised, checked.
#include "tests/store/cache/memory_store.h"

#include <algorithm>
#include <utility>

#include "store/codec.h"

namespace ember::testing {
namespace {

Status decode_checked(const MemoryStore::Block& block, uint32_t group, Bytes raw) {
  const GroupEntry& entry = block.record.groups[group];
  EMBER_TRY(decode_group(entry.codec, block.payloads[group], raw));
  if (checksum64(raw) != entry.checksum) {
    return Error{ErrorCode::kCorruption, "memory disk: checksum differs"};
  }
  return {};
}

class MemoryDisk final : public DiskTier {
 public:
  explicit MemoryDisk(MemoryStore& store) : store_(store) {}
  // RocksDB flushes what it accepted when it is closed.
  ~MemoryDisk() override {
    for (auto& [hash, block] : store_.blocks) block.flushed = true;
  }

  Result<Listing> list() override {
    MutexLock lock(store_.mutex);
    Listing listing;
    for (const auto& [hash, block] : store_.blocks) {
      listing.records.emplace_back(block.record, block.touch);
    }
    return listing;
  }
  Result<ScanStep> scan(const ScanFrom& from, size_t most, const RecordVisitor& visit) override {
    if (store_.before_scan) EMBER_TRY(store_.before_scan());
    MutexLock lock(store_.mutex);
    ScanStep step;
    step.done = true;
    for (const auto& [hash, block] : store_.blocks) {
      const bool in_share = hash.bytes[0] * kScanShares / 256 == from.share;
      if (!in_share || (!from.cursor.empty() && hash.view() <= from.cursor)) continue;
      step.done = step.found < most;
      if (!step.done) break;
      visit(block.record, block.touch);
      ++step.found;
      step.cursor = std::string(hash.view());
    }
    return step;
  }
  Result<std::optional<BlockRecord>> read_record(const BlockHash& hash) override {
    MutexLock lock(store_.mutex);
    const auto found = store_.blocks.find(hash);
    if (found == store_.blocks.end()) return std::optional<BlockRecord>();
    return std::optional<BlockRecord>(found->second.record);
  }
  Status read_group(const BlockRecord& record, uint32_t group, Bytes raw) override {
    ++store_.reads;
    if (store_.before_read) EMBER_TRY(store_.before_read(record.hash, group));
    MutexLock lock(store_.mutex);
    const auto found = store_.blocks.find(record.hash);
    if (found == store_.blocks.end()) return Error{ErrorCode::kCorruption, "memory disk: gone"};
    EMBER_TRY(decode_checked(found->second, group, raw));
    if (store_.after_read) store_.after_read(raw);
    return {};
  }
  Result<std::optional<FoundRecord>> read_as_found(const BlockHash& hash) override {
    MutexLock lock(store_.mutex);
    const auto found = store_.blocks.find(hash);
    if (found == store_.blocks.end()) return std::optional<FoundRecord>();
    FoundRecord as_found;
    as_found.record = encode_record(found->second.record);
    for (const std::string& payload : found->second.payloads) as_found.groups.emplace_back(payload);
    return std::optional<FoundRecord>(std::move(as_found));
  }
  Result<Scan> records_after(const std::optional<BlockHash>& after, size_t most) override {
    MutexLock lock(store_.mutex);
    Scan scan;
    auto next = after ? store_.blocks.upper_bound(*after) : store_.blocks.begin();
    for (; next != store_.blocks.end() && scan.records.size() < most; ++next) {
      scan.records.emplace_back(next->first, next->second.record);
    }
    scan.ended = next == store_.blocks.end();
    return scan;
  }
  std::vector<BlockHash> take_lost() override {
    MutexLock lock(store_.mutex);
    return std::exchange(store_.lost, {});
  }
  Status put(BlockRecord& record, std::span<const std::string> payloads) override {
    if (store_.before_put) EMBER_TRY(store_.before_put(record.hash));
    if (!has_room(record.stored_bytes())) {
      return Error{ErrorCode::kCapacity, "memory disk: full"};
    }
    MutexLock lock(store_.mutex);
    if (record.position > 0 && !store_.blocks.contains(record.parent)) ++store_.order_faults;
    record.epoch = epoch_for(record.stored_bytes());
    store_.written_bytes += record.stored_bytes();
    ++store_.puts;
    MemoryStore::Block& block = store_.blocks[record.hash];
    block = {record, {}, {payloads.begin(), payloads.end()}, false};
    return {};
  }
  Status erase(const BlockHash& hash) override {
    if (store_.before_erase) EMBER_TRY(store_.before_erase());
    MutexLock lock(store_.mutex);
    for (const auto& [other, block] : store_.blocks) {
      if (block.record.position > 0 && block.record.parent == hash) ++store_.order_faults;
    }
    store_.blocks.erase(hash);
    return {};
  }
  Status touch(std::span<const std::pair<BlockHash, TouchRecord>> touches) override {
    MutexLock lock(store_.mutex);
    for (const auto& [hash, touch] : touches) {
      const auto found = store_.blocks.find(hash);
      if (found == store_.blocks.end()) continue;
      found->second.touch = touch;
      ++store_.touches;
    }
    return {};
  }
  Status flush() override {
    if (store_.before_flush) EMBER_TRY(store_.before_flush());
    if (store_.swallow_flush && store_.swallow_flush()) return {};
    MutexLock lock(store_.mutex);
    for (auto& [hash, block] : store_.blocks) block.flushed = true;
    ++store_.flushes;
    return {};
  }
  bool has_room(uint64_t stored_bytes) const override {
    return store_.taken_bytes() + stored_bytes <= store_.limit_bytes;
  }
  Status make_room(uint64_t) override {
    if (store_.epoch_blocks > 0) retire_deadest();
    return {};
  }
  double next_dead_share() const override { return deadest().second; }
  std::vector<EpochSample> sample_epochs(size_t, size_t most_blocks) override {
    std::vector<EpochSample> samples;
    for (const auto& [epoch, bytes] : sealed()) {
      EpochSample sample{epoch, bytes, 0, {}};
      for (const LiveBlock& block : live_blocks(epoch)) {
        sample.live_bytes += block.stored_bytes;
        if (sample.live.size() < most_blocks) sample.live.push_back(block.hash);
      }
      samples.push_back(std::move(sample));
    }
    return samples;
  }
  std::vector<LiveBlock> live_blocks(uint32_t epoch) override {
    MutexLock lock(store_.mutex);
    std::vector<LiveBlock> live;
    for (const auto& [hash, block] : store_.blocks) {
      if (block.record.epoch == epoch) live.push_back({hash, block.record.stored_bytes()});
    }
    return live;
  }
  DiskTierStats stats() const override {
    DiskTierStats stats;
    stats.stored_bytes = store_.stored_bytes();
    stats.written_bytes = store_.written_bytes;
    stats.lost_blocks = store_.lost_blocks;
    stats.health = "ok";
    return stats;
  }
  Result<std::vector<std::string>> verify_files() override { return std::vector<std::string>(); }

 private:
  uint32_t epoch_for(uint64_t bytes) {
    if (store_.epoch_blocks == 0) return ++epoch_;
    if (in_epoch_++ % store_.epoch_blocks == 0) {
      while (store_.epoch_bytes.contains(++epoch_)) {
      }
    }
    store_.epoch_bytes[epoch_] += bytes;
    return epoch_;
  }
  std::map<uint32_t, uint64_t> sealed() const {
    MutexLock lock(store_.mutex);
    std::map<uint32_t, uint64_t> epochs = store_.epoch_bytes;
    epochs.erase(epoch_);
    return epochs;
  }
  std::pair<uint32_t, double> deadest() const {
    std::pair<uint32_t, double> best{0, 0.0};
    for (const auto& [epoch, bytes] : sealed()) {
      uint64_t live = 0;
      MutexLock lock(store_.mutex);
      for (const auto& [hash, block] : store_.blocks) {
        if (block.record.epoch == epoch) live += block.record.stored_bytes();
      }
      const double dead = 1 - static_cast<double>(live) / static_cast<double>(bytes);
      if (dead > best.second) best = {epoch, dead};
    }
    return best;
  }
  void retire_deadest() {
    const uint32_t epoch = deadest().first;
    MutexLock lock(store_.mutex);
    if (epoch == 0) return;
    for (auto& [hash, block] : store_.blocks) {
      if (block.record.epoch != epoch) continue;
      block.record.epoch = epoch_for(block.record.stored_bytes());
      store_.rewritten_bytes += block.record.stored_bytes();
    }
    store_.epoch_bytes.erase(epoch);
  }

  MemoryStore& store_;
  uint32_t epoch_ = 0;
  size_t in_epoch_ = 0;  // blocks that came into the epochs
};

class MemoryConversations final : public Conversations {
 public:
  explicit MemoryConversations(MemoryStore& store) : store_(store) {}
  Status put_head(const Conversation&) override { return {}; }
  Status put_turn(const std::string&, uint32_t, const Turn&) override { return {}; }
  Result<Conversation> load(const std::string&) override { return Conversation(); }
  Result<std::vector<Conversation>> list() override { return std::vector<Conversation>(); }
  uint64_t unreadable_heads() const override { return 0; }
  Status remove(const std::string&) override { return {}; }

  Status put_tail(const BlockRecord& record, std::span<const std::string> payloads,
                  bool sync) override {
    if (store_.before_put) EMBER_TRY(store_.before_put(record.hash));
    MutexLock lock(store_.mutex);
    store_.tails[record.hash] = {record, {}, {payloads.begin(), payloads.end()}, sync};
    return {};
  }
  Status erase_tail(const BlockHash& hash) override {
    MutexLock lock(store_.mutex);
    store_.tails.erase(hash);
    return {};
  }
  Result<TailListing> list_tails() override {
    if (store_.before_list_tails) EMBER_TRY(store_.before_list_tails());
    MutexLock lock(store_.mutex);
    TailListing listing;
    for (const auto& [hash, tail] : store_.tails) listing.records.push_back(tail.record);
    return listing;
  }
  Status read_tail_group(const BlockRecord& record, uint32_t group, Bytes raw) override {
    if (store_.before_read) EMBER_TRY(store_.before_read(record.hash, group));
    MutexLock lock(store_.mutex);
    const auto found = store_.tails.find(record.hash);
    if (found == store_.tails.end()) return Error{ErrorCode::kCorruption, "memory tails: gone"};
    return decode_checked(found->second, group, raw);
  }
  uint64_t file_bytes() const override { return 0; }
  Result<std::vector<std::string>> verify_files() override { return std::vector<std::string>(); }

 private:
  MemoryStore& store_;
};

}  // namespace

void MemoryStore::lose(const BlockHash& hash) {
  MutexLock lock(mutex);
  blocks.at(hash).record.epoch = 0;
  blocks.at(hash).payloads.assign(blocks.at(hash).payloads.size(), "gone");
  lost.push_back(hash);
  ++lost_blocks;
}

uint64_t MemoryStore::stored_bytes() {
  MutexLock lock(mutex);
  uint64_t sum = 0;
  for (const auto& [hash, block] : blocks) sum += block.record.stored_bytes();
  return sum;
}

uint64_t MemoryStore::taken_bytes() {
  if (epoch_blocks == 0) return stored_bytes();
  MutexLock lock(mutex);
  uint64_t sum = 0;
  for (const auto& [epoch, bytes] : epoch_bytes) sum += bytes;
  return sum;
}

void MemoryStore::lose_unflushed() {
  MutexLock lock(mutex);
  std::erase_if(blocks, [](const auto& item) { return !item.second.flushed; });
  std::erase_if(tails, [](const auto& item) { return !item.second.flushed; });
}

void MemoryStore::corrupt(const BlockHash& hash, uint32_t group) {
  MutexLock lock(mutex);
  Block& block = blocks.contains(hash) ? blocks.at(hash) : tails.at(hash);
  std::string& payload = block.payloads[group];
  payload[payload.size() / 2] = static_cast<char>(payload[payload.size() / 2] ^ 1);
}

std::unique_ptr<DiskTier> open_memory_disk(MemoryStore& store) {
  return std::make_unique<MemoryDisk>(store);
}
std::unique_ptr<Conversations> open_memory_conversations(MemoryStore& store) {
  return std::make_unique<MemoryConversations>(store);
}

}  // namespace ember::testing
