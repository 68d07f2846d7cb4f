// What the tests of the disk share: a scratch folder, made-up blocks, sizes as the disk has them.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/prng.h"
#include "store/disk_tier.h"
#include "store/record.h"

namespace ember {

// In memory where there is enough of it, since most tests would only wait for the drive; kDrive for
// those whose point is the drive.
class ScratchFolder {
 public:
  enum Where { kAnywhere, kDrive };
  explicit ScratchFolder(Where where = kAnywhere) {
    std::error_code absent;
    std::filesystem::path memory = "/dev/shm";
    uint64_t free_bytes = std::filesystem::space(memory, absent).available;
    bool roomy = !absent && free_bytes > (uint64_t{512} << 20);
    std::filesystem::path parent = std::filesystem::temp_directory_path();
    std::string name = ((where == kAnywhere && roomy ? memory : parent) / "ember-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string path() const { return path_; }
  std::string sub(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline uint64_t bytes_below(const std::string& folder) {
  uint64_t sum = 0;
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) {
    std::error_code gone;
    uint64_t size = it->is_regular_file(gone) ? it->file_size(gone) : 0;
    if (!gone) sum += size;
  }
  return sum;
}

inline std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// A block whose every byte follows from `id`.
struct MadeBlock {
  BlockRecord record;
  std::vector<std::string> payloads;
  std::vector<std::vector<std::byte>> raw;
};

inline BlockHash made_hash(uint64_t id) {
  BlockHash hash;
  uint64_t halves[2] = {mix64(id + 1), mix64(id + (uint64_t{1} << 40))};
  std::memcpy(hash.bytes.data(), halves, sizeof halves);
  return hash;
}

inline MadeBlock make_block(uint64_t id, uint32_t groups, uint32_t group_bytes) {
  Prng prng(id * 977 + 13);
  MadeBlock block;
  block.record.hash = made_hash(id);
  block.record.parent = made_hash(id / 2);
  block.record.name_space = made_hash(1u << 30);
  block.record.scope = "shared";
  block.record.position = static_cast<uint32_t>(id);
  block.record.tokens.resize(1 + id % 64);
  for (TokenId& token : block.record.tokens) token = static_cast<TokenId>(prng.below(1000));
  for (uint32_t g = 0; g < groups; ++g) {
    std::vector<std::byte> raw(group_bytes);
    for (size_t i = 0; i + 8 <= raw.size(); i += 8) {
      uint64_t bits = prng() & 0x87ff87ff87ff87ffull;  // exponents that compress a little
      std::memcpy(raw.data() + i, &bits, 8);
    }
    EncodedGroup coded = encode_group({DType::kBf16, 1, group_bytes / 2}, raw);
    GroupEntry entry;
    entry.first_layer = g;
    entry.layers = 1;
    entry.raw_bytes = group_bytes;
    entry.stored_bytes = static_cast<uint32_t>(coded.payload.size());
    entry.codec = coded.codec;
    entry.checksum = checksum64(raw);
    block.record.groups.push_back(entry);
    block.payloads.push_back(std::move(coded.payload));
    block.raw.push_back(std::move(raw));
  }
  return block;
}

// Empty when every group of `block` reads back right; else the first error. Wrong bytes are a
// failure of the test in any case.
inline std::string read_error(DiskTier& tier, const BlockRecord& record, const MadeBlock& block) {
  for (uint32_t g = 0; g < record.groups.size(); ++g) {
    std::vector<std::byte> raw(record.groups[g].raw_bytes);
    Status status = tier.read_group(record, g, raw);
    if (!status.ok()) return status.error().message;
    EXPECT_EQ(raw, block.raw[g]) << "wrong bytes were served";
  }
  return "";
}

inline DiskTierOptions small_tier(const std::string& directory, uint64_t limit_bytes) {
  DiskTierOptions options;
  options.directory = directory;
  options.limit_bytes = limit_bytes;
  options.memtable_bytes = 4u << 20;
  options.block_cache_bytes = 1u << 20;
  return options;
}

inline std::unique_ptr<DiskTier> open_tier(const DiskTierOptions& options) {
  Result<std::unique_ptr<DiskTier>> tier = DiskTier::open(options);
  EXPECT_TRUE(tier.ok()) << tier.error().message;
  return tier.ok() ? std::move(*tier) : nullptr;
}

// RocksDB removes files in the background, between one look and the other: what is counted and what
// is there agree when it has come to rest.
inline void expect_counted_as_on_disk(const DiskTier& tier, const std::string& directory) {
  for (int look = 0; look < 50; ++look) {
    if (tier.stats().file_bytes == bytes_below(directory)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(tier.stats().file_bytes, bytes_below(directory));
}

}  // namespace ember
