// Each call draws its fate from the seed and the number of the call.
#include "tests/support/faulty_tier.h"

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/prng.h"

namespace ember::testing {
namespace {

class FaultyTier final : public DiskTier {
 public:
  FaultyTier(std::unique_ptr<DiskTier> tier, std::shared_ptr<TierWeather> weather)
      : tier_(std::move(tier)), weather_(std::move(weather)) {}

  Result<Listing> list() override { return tier_->list(); }
  Result<ScanStep> scan(const ScanFrom& from, size_t most, const RecordVisitor& visit) override {
    return tier_->scan(from, most, visit);
  }
  Result<std::optional<BlockRecord>> read_record(const BlockHash& hash) override {
    if (strikes(weather_->failing_reads)) return Error{ErrorCode::kIo, "the weather: no record"};
    return tier_->read_record(hash);
  }
  Status read_group(const BlockRecord& record, uint32_t group, Bytes raw) override {
    if (strikes(weather_->late_reads)) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    if (strikes(weather_->failing_reads)) return {ErrorCode::kIo, "the weather: no group"};
    EMBER_TRY(tier_->read_group(record, group, raw));
    if (strikes(weather_->short_reads)) {
      std::memset(raw.data() + raw.size() / 2, 0x7f, raw.size() - raw.size() / 2);
      return {ErrorCode::kCorruption, "the weather: half of a group"};
    }
    if (strikes(weather_->corrupt_reads)) {
      std::memset(raw.data(), 0x5a, raw.size());
      return {ErrorCode::kCorruption, "the weather: wrong bytes"};
    }
    return {};
  }
  Result<std::optional<FoundRecord>> read_as_found(const BlockHash& hash) override {
    return tier_->read_as_found(hash);
  }
  Result<Scan> records_after(const std::optional<BlockHash>& hash, size_t most) override {
    return tier_->records_after(hash, most);
  }
  std::vector<BlockHash> take_lost() override { return tier_->take_lost(); }
  Status probe() override { return tier_->probe(); }
  Status put(BlockRecord& record, std::span<const std::string> payloads) override {
    if (strikes(weather_->busy_writes)) return {ErrorCode::kBusy, "the weather: a pause"};
    if (strikes(weather_->failing_writes)) return {ErrorCode::kIo, "the weather: no write"};
    return tier_->put(record, payloads);
  }
  Status erase(const BlockHash& hash) override {
    if (strikes(weather_->failing_writes)) return {ErrorCode::kIo, "the weather: no erasure"};
    return tier_->erase(hash);
  }
  Status touch(std::span<const std::pair<BlockHash, TouchRecord>> touches) override {
    return tier_->touch(touches);
  }
  Status flush() override {
    if (strikes(weather_->failing_flushes)) return {ErrorCode::kIo, "the weather: no flush"};
    return tier_->flush();
  }
  bool has_room(uint64_t stored_bytes) const override { return tier_->has_room(stored_bytes); }
  Status make_room(uint64_t stored_bytes) override { return tier_->make_room(stored_bytes); }
  Result<bool> make_room_slice(uint64_t stored_bytes) override {
    return tier_->make_room_slice(stored_bytes);
  }
  Result<bool> upkeep() override { return tier_->upkeep(); }
  DiskTierStats stats() const override { return tier_->stats(); }
  Result<std::vector<std::string>> verify_files() override { return tier_->verify_files(); }

 private:
  bool strikes(const std::atomic<uint32_t>& odds) {
    const uint64_t call = weather_->calls++;
    if (counter_random(weather_->seed, 7, call) % 1000 >= odds) return false;
    ++weather_->faults;
    return true;
  }

  std::unique_ptr<DiskTier> tier_;
  std::shared_ptr<TierWeather> weather_;
};

}  // namespace

void TierWeather::clear() {
  for (auto* odds : {&failing_reads, &short_reads, &corrupt_reads, &late_reads, &failing_writes,
                     &busy_writes, &failing_flushes}) {
    *odds = 0;
  }
}

std::unique_ptr<DiskTier> make_faulty_tier(std::unique_ptr<DiskTier> tier,
                                           std::shared_ptr<TierWeather> weather) {
  return std::make_unique<FaultyTier>(std::move(tier), std::move(weather));
}

}  // namespace ember::testing
