// Flip run: bits of a store's files are flipped, many times over, and everything that the store
// gives is compared with what was put in.
//
// The store is opened for reading, so that its files stay as they are and a flip is taken back by
// writing one byte; every so often it is opened for writing instead, on a copy. Flips that cannot
// hide one another share an opening: any number in files that have no say in whether the store
// opens (payloads, options), and one in each database's other files.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/prng.h"
#include "tests/store/cache/cache_harness.h"

namespace ember::testing {

enum class FlipKind : uint8_t {
  kBlob, kTable, kLog, kManifest, kCurrent, kIdentity, kOptions, kQuarantine, kOther
};
inline constexpr size_t kFlipKinds = 9;
const char* flip_kind_name(FlipKind kind);

// Sums only, so that processes can add theirs up.
struct FlipCounts {
  std::array<uint64_t, kFlipKinds> files{};    // of the store
  std::array<uint64_t, kFlipKinds> bytes{};    // of those
  std::array<uint64_t, kFlipKinds> flips{};
  std::array<uint64_t, kFlipKinds> refused{};  // the database, or the store, did not open
  std::array<uint64_t, kFlipKinds> noticed{};  // something was missing: flips that came alone
  uint64_t openings = 0;
  uint64_t openings_for_writing = 0;
  uint64_t healed = 0;           // of those: all was stored again, and restored after reopening
  uint64_t writes_stopped = 0;   // of those: a damaged table kept RocksDB from writing
  uint64_t groups_right = 0;    // read and equal
  uint64_t groups_refused = 0;  // an error instead
  uint64_t rows_restored = 0;   // through the cache, and equal
  uint64_t conversations_right = 0;
  uint64_t conversations_refused = 0;

  void add(const FlipCounts& other);
};

class FlipRun {
 public:
  // Makes the store: chains with a common prefix, tails, conversations in log and tables, a record
  // in quarantine, a scrub mark.
  static void make_store(const std::string& path);

  // Works on a copy of `pristine` at `path`.
  FlipRun(const std::string& pristine, const std::string& path);
  // Draws flips, uniform over all bytes, and tries each.
  FlipCounts run(uint64_t seed, uint64_t flips);

 private:
  struct File {
    std::string name;  // relative to the store
    FlipKind kind = FlipKind::kOther;
    uint64_t size = 0;
  };
  struct Flip {
    size_t file = 0;
    uint64_t at = 0;
    uint8_t mask = 0;
  };
  using Queue = std::vector<Flip>;

  void find_files();
  void read_truth();
  Flip draw(Prng& prng) const;
  void apply(const std::string& store, const std::vector<Flip>& flips) const;
  void take(Queue& queue, size_t most, std::vector<Flip>& round) const;
  // One opening with these flips.
  void try_reading(const std::vector<Flip>& round);
  void try_writing(const std::vector<Flip>& round);
  void check_blocks(DiskTier& disk);
  void check_conversations(Conversations& conversations);
  void settle(const std::vector<Flip>& round, bool blocks_refused, bool turns_refused,
              uint64_t missing);

  std::string pristine_;
  std::string path_;
  std::vector<File> files_;
  uint64_t total_bytes_ = 0;
  // What the store holds, read when it was whole.
  std::map<BlockHash, std::vector<std::vector<std::byte>>> truth_;
  std::vector<Conversation> conversations_;
  FlipCounts counts_;
  MemoryStore unused_;
};

}  // namespace ember::testing
