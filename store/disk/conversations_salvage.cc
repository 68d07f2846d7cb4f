// Gathering rows of tables and logs, and keeping the newest that are right.
#include "store/disk/conversations_salvage.h"

#include <rocksdb/write_batch.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/bytes.h"
#include "store/disk/conversations_database.h"
#include "store/disk/conversations_format.h"
#include "store/disk/rocksdb_log_check.h"
#include "store/disk/table_blocks.h"
#include "store/disk/value_sealer.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHeadKeyBytes = 17;
constexpr size_t kTurnKeyBytes = 21;
constexpr size_t kTailKeyBytes = 16;
constexpr size_t kIdBytes = 16;
constexpr size_t kBatchHeadBytes = 12;

struct Row {
  uint64_t sequence = 0;
  bool erased = false;
  std::string value;
};
using Rows = std::map<std::string, std::vector<Row>>;  // the newest of a key first

// One write of a log, row by row.
class BatchRows final : public rocksdb::WriteBatch::Handler {
 public:
  BatchRows(Rows& rows, uint64_t sequence) : rows_(rows), sequence_(sequence) {}
  rocksdb::Status PutCF(uint32_t, const rocksdb::Slice& key, const rocksdb::Slice& value) override {
    rows_[key.ToString()].push_back({sequence_++, false, value.ToString()});
    return rocksdb::Status::OK();
  }
  rocksdb::Status DeleteCF(uint32_t, const rocksdb::Slice& key) override {
    rows_[key.ToString()].push_back({sequence_++, true, {}});
    return rocksdb::Status::OK();
  }
  void LogData(const rocksdb::Slice&) override {}

 private:
  Rows& rows_;
  uint64_t sequence_;
};

void take_log(std::string_view bytes, Rows& rows) {
  each_log_record(bytes, [&rows](std::string_view record) {
    if (record.size() < kBatchHeadBytes) return;
    BatchRows taken(rows, load_unaligned<uint64_t>(record.data()));
    const rocksdb::WriteBatch batch{std::string(record)};
    static_cast<void>(batch.Iterate(&taken).ok());  // as far as it can be read
  });
}

Rows gather(const std::string& from) {
  Rows rows;
  std::error_code error;
  for (fs::directory_iterator it(from, error), end; !error && it != end; it.increment(error)) {
    const std::string extension = it->path().extension().string();
    if (extension != ".sst" && extension != ".log") continue;
    const Result<std::string> bytes = read_as_far_as_possible(it->path().string());
    if (!bytes.ok()) continue;
    if (extension == ".log") {
      take_log(*bytes, rows);
      continue;
    }
    scan_table_blocks(*bytes, [&rows](const TableRow& row) {
      rows[std::string(row.key)].push_back({row.sequence, row.erased, std::string(row.value)});
    });
  }
  for (auto& [key, found] : rows) {
    std::stable_sort(found.begin(), found.end(),
                     [](const Row& a, const Row& b) { return a.sequence > b.sequence; });
    const auto erased =
        std::find_if(found.begin(), found.end(), [](const Row& row) { return row.erased; });
    found.erase(erased, found.end());
  }
  return rows;
}

class ConversationsSalvage {
 public:
  ConversationsSalvage(ConversationsDatabase& database, ValueSealer* sealer)
      : database_(database), sealer_(sealer) {}

  Result<ConversationsSalvaged> run(const Rows& rows) {
    std::map<std::string, std::set<uint32_t>> turns;  // by id
    std::set<std::string> heads;
    for (const auto& [key, found] : rows) {
      const Row* row = newest_right(key, found);
      if (row == nullptr) continue;
      if (key.size() == kTailKeyBytes) {
        EMBER_TRY(put(key, row->value));
        ++done_.tails;
      } else if (key.size() == kHeadKeyBytes) {
        heads.insert(key.substr(1));
      } else {
        const auto index = load_unaligned<uint32_t>(key.data() + 1 + kIdBytes);
        turns[key.substr(1, kIdBytes)].insert(__builtin_bswap32(index));
      }
    }
    for (const std::string& id : heads) EMBER_TRY(take_conversation(id, rows, turns[id]));
    for (const auto& [id, indices] : turns) {
      if (!heads.contains(id) && !indices.empty()) done_.lost.push_back(id);
    }
    return done_;
  }

 private:
  const Row* newest_right(const std::string& key, const std::vector<Row>& found) const {
    for (const Row& row : found) {
      if (is_right(key, row.value)) return &row;
    }
    return nullptr;
  }

  bool is_right(std::string_view key, std::string_view value) const {
    const bool tail = key.size() == kTailKeyBytes;
    const bool head = key.size() == kHeadKeyBytes && key[0] == 'h';
    const bool turn = key.size() == kTurnKeyBytes && key[0] == 't';
    if (!tail && !head && !turn) return false;
    std::string opened;
    const Result<std::optional<std::string_view>> plain = plain_form(
        sealer_, {tail ? ValueKind::kTail : ValueKind::kTurn, key}, value, opened);
    if (!plain.ok() || !*plain) return false;
    if (tail) return decode_tail(key, **plain).ok();
    return head ? decode_head(key, **plain).ok() : decode_turn(key, **plain).ok();
  }

  Status take_conversation(const std::string& id, const Rows& rows,
                           const std::set<uint32_t>& indices) {
    const std::string head = head_key(id);
    EMBER_TRY(put(head, newest_right(head, rows.at(head))->value));
    ++done_.conversations;
    uint32_t next = 0;
    for (const uint32_t index : indices) {
      if (index != next) break;
      const std::string key = turn_key(id, index);
      EMBER_TRY(put(key, newest_right(key, rows.at(key))->value));
      ++done_.turns;
      ++next;
    }
    // A key whose rows are all wrong tells of a turn that was there, and so does one behind a gap.
    auto behind = rows.lower_bound(turn_key(id, next));
    const auto is_its = [&] {
      return behind != rows.end() && behind->first.starts_with(turn_prefix(id));
    };
    while (is_its() && behind->second.empty()) ++behind;  // erased
    if (is_its()) done_.cut.push_back(id);
    return {};
  }

  Status put(const std::string& key, const std::string& value) {
    return database_.write(false, [&](rocksdb::WriteBatch& batch,
                                      const ConversationsDatabase::Use& use) {
      batch.Put(key.size() == kTailKeyBytes ? use.tails : use.turns, key, value);
      return Status();
    });
  }

  ConversationsDatabase& database_;
  ValueSealer* sealer_;
  ConversationsSalvaged done_;
};

}  // namespace

Result<ConversationsSalvaged> salvage_conversations(const std::string& from,
                                                    const ConversationsOptions& into) {
  ConversationsDatabase database(into, nullptr);
  EMBER_TRY(database.open());
  EMBER_ASSIGN(ConversationsSalvaged done,
               ConversationsSalvage(database, into.sealer.get()).run(gather(from)));
  EMBER_TRY(database.purge());  // flushes, so that nothing hangs on a log
  return done;
}

}  // namespace ember
