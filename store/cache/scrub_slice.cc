// Proof of one block after the other, in the order of their hashes.
#include "store/cache/scrub_slice.h"

#include <string>

#include "base/clock.h"

namespace ember {
namespace {

constexpr size_t kListed = 16;          // records taken from the disk at a time
constexpr uint64_t kRecordBytes = 512;  // about what reading a record's metadata costs

class Scrub {
 public:
  Scrub(DiskTier& disk, Quarantine* quarantine, const HashSecret& secret, ScrubSlice& slice)
      : disk_(disk), quarantine_(quarantine), secret_(secret), slice_(slice) {}

  Status run() {
    while (!slice_.suspects.empty() && !enough()) {
      const BlockHash hash = slice_.suspects.back();
      check(hash, disk_.read_record(hash));
      if (!slice_.stop) slice_.suspects.pop_back();
    }
    while (!slice_.ended && !slice_.gap && !enough()) {
      EMBER_ASSIGN(DiskTier::Scan scan, disk_.records_after(slice_.reached, kListed));
      bool all = true;
      for (auto& [hash, record] : scan.records) {
        all = !enough();
        if (all) check(hash, whole(std::move(record)));
        all = all && !slice_.stop;  // one that was broken off is read again
        if (!all) break;
        slice_.reached = hash;
      }
      // A gap counts once the slice has come past it.
      const bool past = all || (slice_.reached && *slice_.reached >= scan_end(scan));
      if (scan.gap && past) slice_.gap = scan.gap;
      slice_.ended = all && scan.ended;
    }
    return {};
  }

 private:
  using Found = Result<std::optional<BlockRecord>>;

  bool enough() const { return slice_.stop || slice_.bytes >= slice_.budget_bytes; }

  static BlockHash scan_end(const DiskTier::Scan& scan) {
    return scan.gap ? scan.gap->second : BlockHash{};
  }

  static Found whole(Result<BlockRecord> record) {
    if (!record.ok()) return record.error();
    return std::optional<BlockRecord>(std::move(*record));
  }

  void check(const BlockHash& hash, const Found& found) {
    Status status = prove(hash, found);
    // Once more, from the record on: a drive may err once, and the block may be gone or moved.
    if (!status.ok()) status = prove(hash, disk_.read_record(hash));
    if (status.ok()) return;
    if (status.error().code == ErrorCode::kCancelled) return;  // forgotten meanwhile
    if (status.error().code != ErrorCode::kCorruption) {
      ++slice_.read_errors;
      return;
    }
    const Found still = disk_.read_record(hash);
    if (still.ok() && !still->has_value()) return;
    slice_.damaged.push_back(hash);
    set_aside(hash, still.ok() ? (*still)->position : 0, status.error().message);
  }

  // A record that is not there is no damage: it was erased meanwhile.
  Status prove(const BlockHash& hash, const Found& found) {
    slice_.bytes += kRecordBytes;
    if (!found.ok()) return found.error();
    if (!found->has_value()) return {};
    const BlockRecord& record = **found;
    const BlockHasher hasher(secret_, record.name_space, record.scope);
    if (record.hash != hash || hasher.next(record.parent, record.tokens) != hash) {
      return {ErrorCode::kCorruption,
              "block " + hash.hex() + ": its hash is not that of its parent and tokens"};
    }
    for (uint32_t group = 0; group < record.groups.size(); ++group) {
      if (slice_.stop) return {};
      raw_.resize(record.groups[group].raw_bytes);
      slice_.bytes += record.groups[group].stored_bytes;
      EMBER_TRY(disk_.read_group(record, group, raw_));
    }
    ++slice_.blocks;
    return {};
  }

  // As it lies there: sealed, in an encrypted store.
  void set_aside(const BlockHash& hash, uint32_t position, const std::string& why) {
    if (quarantine_ == nullptr) return;
    Result<std::optional<FoundRecord>> found = disk_.read_as_found(hash);
    if (!found.ok() || !found->has_value()) return;
    // A quarantine that is full or cannot be written keeps nothing and counts that.
    static_cast<void>(quarantine_->keep(
        {hash, position, false, why + " (found by the scrubber)", std::move(**found)},
        system_clock().unix_us()));
  }

  DiskTier& disk_;
  Quarantine* quarantine_;
  const HashSecret& secret_;
  ScrubSlice& slice_;
  std::vector<std::byte> raw_;
};

}  // namespace

Status run_scrub_slice(DiskTier& disk, Quarantine* quarantine, const HashSecret& secret,
                       ScrubSlice& slice) {
  return Scrub(disk, quarantine, secret, slice).run();
}

}  // namespace ember
