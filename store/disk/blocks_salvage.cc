// Gathering rows, then going through the blob files once.
#include "store/disk/blocks_salvage.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "store/disk/blob_log.h"
#include "store/disk/disk_format.h"
#include "store/disk/disk_tier_impl.h"
#include "store/disk/table_blocks.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlockKeyBytes = 17;
constexpr size_t kTouchesAtOnce = 512;

std::vector<std::string> files_of(const std::string& folder, const std::string& extension) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == extension) files.push_back(it->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

struct Row {
  uint64_t sequence = 0;
  bool erased = false;
  std::string value;
};

// The groups of one block in one epoch, as one write put them.
struct Run {
  std::string_view place;  // epoch and hash, of a key
  std::map<uint32_t, std::string_view> groups;
};

}  // namespace

class BlocksSalvage {
 public:
  BlocksSalvage(const BlocksSalvageOptions& options, DiskTierImpl& tier)
      : options_(options), tier_(tier) {}

  Result<BlocksSalvaged> run() {
    EMBER_TRY(gather_rows());
    EMBER_TRY(go_through_blobs());
    EMBER_TRY(keep_holes());
    EMBER_TRY(keep_touches());
    EMBER_TRY(tier_.flush());
    return done_;
  }

 private:
  struct Known {
    std::vector<Row> rows;  // the newest first; none of them erased
    size_t saved = SIZE_MAX;  // which of them
    bool hole = false;
    bool told = false;  // what was wrong with it
  };

  Status gather_rows() {
    for (const std::string& path : files_of(options_.from, ".sst")) {
      const Result<std::string> table = read_as_far_as_possible(path);
      if (!table.ok()) continue;  // named by whoever looks for broken files
      scan_table_blocks(*table, [this](const TableRow& row) { take_row(row); });
      if (!options_.on_progress(0)) return {ErrorCode::kCancelled, "stopped"};
    }
    for (auto& [hash, known] : known_) settle(known.rows);
    std::erase_if(known_, [](const auto& one) { return one.second.rows.empty(); });
    return {};
  }

  void take_row(const TableRow& row) {
    if (row.key.size() != kBlockKeyBytes) return;
    const std::optional<BlockHash> hash = hash_of_key(row.key);
    const auto kind = static_cast<MetaKind>(row.key[0]);
    if (!hash) return;
    if (kind == MetaKind::kBlock) {
      known_[*hash].rows.push_back({row.sequence, row.erased, std::string(row.value)});
    }
    if (kind != MetaKind::kTouch || row.erased) return;
    const std::optional<TouchRecord> touch = decode_touch(row.key, row.value);
    if (!touch) return;
    TouchRecord& kept = touches_[*hash];
    if (kept.last_use_unix_us <= touch->last_use_unix_us) kept = *touch;
  }

  static void settle(std::vector<Row>& rows) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.sequence > b.sequence; });
    const auto erased =
        std::find_if(rows.begin(), rows.end(), [](const Row& row) { return row.erased; });
    rows.erase(erased, rows.end());
  }

  // Nothing where the row is no record, or not one of that hash.
  std::optional<BlockRecord> record_of(const BlockHash& hash, const Row& row) const {
    Result<std::optional<BlockRecord>> record = tier_.record_of(block_key(hash), row.value);
    if (!record.ok() || !*record) return std::nullopt;
    const BlockHasher hasher(options_.secret, (*record)->name_space, (*record)->scope);
    if (hasher.next((*record)->parent, (*record)->tokens) != hash) return std::nullopt;
    return std::move(*record);
  }

  Status go_through_blobs() {
    const std::vector<std::string> files = files_of(options_.from, ".blob");
    for (size_t i = 0; i < files.size(); ++i) {
      const Result<std::string> bytes = read_as_far_as_possible(files[i]);
      if (!bytes.ok()) continue;
      Status status;
      Run run;
      scan_blob_log(*bytes, [&](const BlobValue& value) {
        const std::string_view place = value.key.substr(0, value.key.size() - 2);
        if (place != run.place) {
          if (status.ok()) status = take_run(run);
          run = {place, {}};
        }
        const auto high = static_cast<uint8_t>(value.key[value.key.size() - 2]);
        const auto low = static_cast<uint8_t>(value.key[value.key.size() - 1]);
        run.groups[high * 256u + low] = value.value;
      });
      EMBER_TRY(status);
      EMBER_TRY(take_run(run));
      EMBER_TRY(tier_.flush());
      const double share = static_cast<double>(i + 1) / static_cast<double>(files.size());
      if (!options_.on_progress(share)) return {ErrorCode::kCancelled, "stopped"};
    }
    return {};
  }

  Status take_run(const Run& run) {
    if (run.place.empty()) return {};
    const uint32_t epoch = __builtin_bswap32(load_unaligned<uint32_t>(run.place.data()));
    const auto hash = load_unaligned<BlockHash>(run.place.data() + sizeof epoch);
    const auto found = known_.find(hash);
    if (found == known_.end()) return {};
    Known& known = found->second;
    for (size_t i = 0; i < known.rows.size() && i <= known.saved; ++i) {
      std::optional<BlockRecord> record = record_of(hash, known.rows[i]);
      if (!record || record->epoch != epoch) continue;
      const Status proven = prove(*record, run);
      if (!proven.ok()) {
        tell(known, *record, run, known.rows[i], proven.error());
        continue;
      }
      const bool again = known.saved != SIZE_MAX;
      EMBER_TRY(save(*record, run));
      known.saved = i;
      done_.blocks += again ? 0u : 1u;
      done_.stored_bytes += again ? 0 : record->stored_bytes();
      return {};
    }
    return {};
  }

  Status prove(const BlockRecord& record, const Run& run) {
    for (uint32_t group = 0; group < record.groups.size(); ++group) {
      const auto found = run.groups.find(group);
      if (found == run.groups.end()) {
        return {ErrorCode::kCorruption, "group " + std::to_string(group) + " of block " +
                                            record.hash.hex() + " is not there"};
      }
      raw_.resize(record.groups[group].raw_bytes);
      EMBER_TRY(tier_.prove_payload(record, group, found->second, raw_));
    }
    return {};
  }

  // As they are stored: sealed groups stay sealed.
  Status save(BlockRecord& record, const Run& run) {
    std::vector<std::string_view> stored;
    for (uint32_t group = 0; group < record.groups.size(); ++group) {
      stored.push_back(run.groups.at(group));
    }
    return tier_.put_now(record, stored, DiskTierImpl::kAgain);
  }

  void tell(Known& known, const BlockRecord& record, const Run& run, const Row& row,
            const Error& why) {
    if (std::exchange(known.told, true) || !options_.into.set_aside) return;
    FoundRecord found;
    found.record = row.value;
    for (uint32_t group = 0; group < record.groups.size(); ++group) {
      const auto at = run.groups.find(group);
      found.groups.push_back(at == run.groups.end()
                                 ? std::optional<std::string>()
                                 : std::optional<std::string>(std::string(at->second)));
    }
    options_.into.set_aside({record.hash, record.position, false,
                             why.message + " (found by a repair)", std::move(found)});
  }

  // A record above what was saved stays without its groups: once it is computed anew, what hangs
  // below is reached again.
  Status keep_holes() {
    std::vector<BlockHash> saved;
    for (const auto& [hash, known] : known_) {
      if (known.saved != SIZE_MAX) saved.push_back(hash);
    }
    for (const BlockHash& hash : saved) {
      const Known& known = known_.at(hash);
      std::optional<BlockRecord> record = record_of(hash, known.rows[known.saved]);
      while (record) {
        const auto above = known_.find(record->parent);
        if (above == known_.end() || above->second.hole || above->second.saved != SIZE_MAX) break;
        record = record_of(above->first, above->second.rows.front());
        if (!record) break;
        above->second.hole = true;
        ++done_.holes;
        EMBER_TRY(put_hole(*record));
      }
    }
    for (const auto& [hash, known] : known_) {
      if (known.hole || known.saved != SIZE_MAX) continue;
      const Result<std::optional<BlockRecord>> record =
          tier_.record_of(block_key(hash), known.rows.front().value);
      if (record.ok() && !*record) continue;  // forgotten
      ++(record.ok() ? done_.lost : done_.unreadable);
    }
    return {};
  }

  Status put_hole(BlockRecord record) {
    record.epoch = 0;
    EMBER_ASSIGN(const std::string row, tier_.row_of(record));
    rocksdb::WriteBatch batch;
    batch.Put(tier_.meta_, block_key(record.hash), row);
    return tier_.write(batch, true);
  }

  Status keep_touches() {
    std::vector<std::pair<BlockHash, TouchRecord>> some;
    for (const auto& [hash, touch] : touches_) {
      const auto found = known_.find(hash);
      if (found == known_.end() || found->second.saved == SIZE_MAX) continue;
      some.emplace_back(hash, touch);
      if (some.size() < kTouchesAtOnce) continue;
      EMBER_TRY(tier_.touch(some));
      some.clear();
    }
    return tier_.touch(some);
  }

  const BlocksSalvageOptions& options_;
  DiskTierImpl& tier_;
  std::unordered_map<BlockHash, Known> known_;
  std::unordered_map<BlockHash, TouchRecord> touches_;
  std::vector<std::byte> raw_;
  BlocksSalvaged done_;
};

Result<BlocksSalvaged> salvage_blocks(const BlocksSalvageOptions& options) {
  EMBER_ASSIGN(const std::unique_ptr<DiskTier> tier, DiskTierImpl::open(options.into, nullptr));
  return BlocksSalvage(options, static_cast<DiskTierImpl&>(*tier)).run();
}

}  // namespace ember
