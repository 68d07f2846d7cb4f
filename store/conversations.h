// Conversations: user data, not cache: transcripts, sampled ids and tail records, never evicted by
// the cache, in a RocksDB of their own with a write-ahead log that is synced with every turn.
//
// Journey    engine/runtime/chat_session -> [conversations]; tails: block_cache -> [conversations]
// Owns       the RocksDB in <store>/conversations: column families `turns` and `tails`
// Invariant  what a call reported as done survives a crash; a damaged database is reported, never
//            silently emptied
// Threads    any (RocksDB's own); one writer for one conversation
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "prefix_index/block_hash.h"
#include "prefix_index/token.h"
#include "store/quarantine.h"
#include "store/record.h"

namespace ember {

enum class TurnState : uint8_t {
  kAsked = 1,     // the user's message is stored, the answer is not finished
  kFinished = 2,  // the answer is complete
};

struct Turn {
  std::string user;             // as typed; empty for a raw-prompt conversation
  std::vector<TokenId> prompt;  // tokens this turn added before its answer
  std::vector<TokenId> answer;  // sampled ids, without the end token
  TurnState state = TurnState::kAsked;
  std::string finish_reason;  // "stop" | "length" when finished
  uint64_t seed = 0;
  float temperature = 0;
  uint32_t max_tokens = 0;  // of this turn's answer
};

struct Conversation {
  std::string id;  // 16 hexadecimal digits
  // Whose it is, its turns too: a tenant, or `shared`, the single user (store/tenants.h).
  std::string scope = "shared";
  NamespaceHash name_space;
  std::string system;  // system prompt text
  std::string template_name;
  int64_t created_unix_us = 0;
  int64_t updated_unix_us = 0;
  std::vector<Turn> turns;
};

class ValueSealer;  // store/disk/value_sealer.h

struct ConversationsOptions {
  std::string directory;
  uint64_t limit_bytes = 0;
  uint64_t memtable_bytes = 4u << 20;
  bool read_only = false;
  std::shared_ptr<ValueSealer> sealer;  // null: values lie in clear
};

class Conversations {
 public:
  static Result<std::unique_ptr<Conversations>> open(const ConversationsOptions& options);
  virtual ~Conversations() = default;

  // Each write is synced before it returns. Errors: kIo, kCapacity.
  virtual Status put_head(const Conversation& conversation) = 0;  // all but the turns
  virtual Status put_turn(const std::string& id, uint32_t index, const Turn& turn) = 0;

  // Errors: kInvalidArgument when there is no such conversation, kCorruption.
  virtual Result<Conversation> load(const std::string& id) = 0;
  // Heads only, newest first.
  virtual Result<std::vector<Conversation>> list() = 0;
  // Heads that the last list() found damaged and left out.
  virtual uint64_t unreadable_heads() const = 0;
  virtual Status remove(const std::string& id) = 0;

  // Tail records: one value holds the record and its groups' payloads. Synced when `sync`.
  virtual Status put_tail(const BlockRecord& record, std::span<const std::string> payloads,
                          bool sync) = 0;
  virtual Status erase_tail(const BlockHash& hash) = 0;
  struct TailListing {
    std::vector<BlockRecord> records;
    uint64_t unreadable = 0;
  };
  virtual Result<TailListing> list_tails() = 0;
  // Proves and decodes one group, as DiskTier::read_group does.
  virtual Status read_tail_group(const BlockRecord& record, uint32_t group, Bytes raw) = 0;

  // A tail as it lies there, for the quarantine; nothing if there is none.
  virtual Result<std::optional<FoundRecord>> read_tail_as_found(const BlockHash&) {
    return std::optional<FoundRecord>();
  }
  // A copy of the database as it is, in `directory`, which is absent. Errors: kIo, kCapacity.
  virtual Status checkpoint(const std::string& directory) {
    return {ErrorCode::kUnsupported, directory + ": this database makes no snapshots"};
  }

  // Compacts the database: then no file of it, the log included, holds a byte of what was removed.
  virtual Status purge() { return {}; }

  virtual uint64_t file_bytes() const = 0;
  virtual Result<std::vector<std::string>> verify_files() = 0;
};

}  // namespace ember
