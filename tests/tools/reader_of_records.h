// Reader of records: a store for tests that is a list of records in memory.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/prng.h"
#include "store/store_reader.h"

namespace ember {

class RecordsReader final : public StoreReader {
 public:
  static BlockHash hash(uint8_t number) {
    BlockHash hash;
    hash.bytes[0] = number;
    return hash;
  }
  void add(uint8_t number, uint8_t parent, uint32_t position, uint64_t tokens = 64) {
    BlockRecord record;
    record.hash = hash(number);
    record.parent = hash(parent);
    record.position = position;
    record.scope = "shared";
    record.epoch = 1;
    record.tokens.resize(tokens);
    record.groups.push_back({.raw_bytes = 100, .stored_bytes = 60});
    records_.emplace_back(std::move(record), TouchRecord{});
  }
  void add(BlockRecord record) { records_.emplace_back(std::move(record), TouchRecord{}); }
  void touch(uint8_t number, const TouchRecord& touch) {
    for (auto& [record, at] : records_) {
      if (record.hash == hash(number)) at = touch;
    }
  }
  void shuffle(Prng& prng) { std::shuffle(records_.begin(), records_.end(), prng); }
  uint64_t tokens() const {
    uint64_t tokens = 0;
    for (const auto& row : records_) tokens += row.first.tokens.size();
    return tokens;
  }

  StoreFacts facts() override { return {}; }
  const HashSecret& secret() const override { return secret_; }
  Result<Walked> walk(const Visitor& visit) override {
    Walked walked;
    BlockPlace place;
    place.in[static_cast<size_t>(Tier::kDisk)] = true;
    for (const auto& [record, touch] : records_) {
      ++walked.blocks;
      if (!visit({record, touch, place})) break;
    }
    return walked;
  }
  Result<std::optional<BlockRecord>> record(const BlockHash& hash) override {
    for (const auto& row : records_) {
      if (row.first.hash == hash) return std::optional<BlockRecord>(row.first);
    }
    return std::optional<BlockRecord>();
  }
  Status read_group(const BlockRecord&, uint32_t, Bytes) override {
    return {ErrorCode::kIo, "a list of records has no latents"};
  }
  Result<NamespaceNote> name_space(const NamespaceHash&) override { return NamespaceNote{}; }
  Conversations& conversations() override {
    EMBER_CHECK(false, "a list of records has no conversations");
    std::abort();
  }
  std::vector<QuarantineRow> quarantined() override { return {}; }
  QuarantineStats quarantine_stats() override { return {}; }
  DiskTierStats disk_stats() override { return {}; }
  Result<std::vector<std::string>> verify_files() override { return std::vector<std::string>(); }

 private:
  static HashSecret drawn_secret() {
    Prng prng(1);
    HashSecret secret;
    for (uint8_t& byte : secret) byte = static_cast<uint8_t>(prng());
    return secret;
  }

  const HashSecret secret_ = drawn_secret();
  std::vector<std::pair<BlockRecord, TouchRecord>> records_;
};

}  // namespace ember
