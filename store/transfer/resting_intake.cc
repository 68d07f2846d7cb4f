// The parts of a store, opened for writing without a cache above them.
#include "store/transfer/resting_intake.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "store/cache/store_parts.h"
#include "store/ram_plan.h"

namespace ember {
namespace {

constexpr uint64_t kMemtableBytes = uint64_t{16} << 20;
constexpr uint64_t kCacheBytes = uint64_t{8} << 20;
constexpr uint64_t kMostWaitingBytes = uint64_t{16} << 20;
constexpr size_t kTouchesAtOnce = 1024;
constexpr int64_t kBusyPatienceUs = 60'000'000;
constexpr std::chrono::milliseconds kBusyPause{20};

// "Busy" asks for patience.
Status patiently(const std::function<Status()>& work) {
  const int64_t until_us = system_clock().now_us() + kBusyPatienceUs;
  while (true) {
    Status done = work();
    const bool busy = !done.ok() && done.error().code == ErrorCode::kBusy;
    if (!busy || system_clock().now_us() >= until_us) return done;
    std::this_thread::sleep_for(kBusyPause);
  }
}

class RestingIntakeImpl final : public RestingIntake {
 public:
  explicit RestingIntakeImpl(StoreParts parts) : parts_(std::move(parts)) {}

  Status find_tails() {
    EMBER_ASSIGN(const Conversations::TailListing tails, parts_.conversations->list_tails());
    for (const BlockRecord& tail : tails.records) tails_.insert(tail.hash);
    return {};
  }

  const HashSecret& secret() const override { return parts_.secret; }

  Status reserve(uint64_t stored_bytes) override {
    return patiently([&]() -> Status { return parts_.disk->make_room(stored_bytes); });
  }

  Status put_namespace(const NamespaceHash& name, const NamespaceEntry& entry) override {
    return write_namespace_note(parts_.directory->path(), name, entry,
                                parts_.plan.namespaces_bytes);
  }

  Status put_block(BlockRecord record, std::vector<std::string> payloads) override {
    EMBER_ASSIGN(const bool known, is_known(record));
    (known ? taken_.known : taken_.fresh).add(record);
    if (known) return {};
    if (record.tail) return keep_tail(std::move(record), std::move(payloads));
    EMBER_TRY(patiently([&] { return put_with_room(record, payloads); }));
    touches_.emplace_back(record.hash,
                          TouchRecord{.last_use_unix_us = system_clock().unix_us(), .hits = 0});
    if (touches_.size() >= kTouchesAtOnce) write_touches();
    return {};
  }

  Status put_conversation(const Conversation& conversation, uint32_t first_turn) override {
    EMBER_TRY(settle());
    Conversations& turns = *parts_.conversations;
    EMBER_TRY(turns.put_head(conversation));
    for (uint32_t i = first_turn; i < conversation.turns.size(); ++i) {
      EMBER_TRY(turns.put_turn(conversation.id, i, conversation.turns[i]));
    }
    return {};
  }

  Status finish() override { return settle(); }

  const Taken& taken() const override { return taken_; }

  void take_back() override {
    if (!parts_.directory->created()) return;
    parts_.conversations.reset();
    parts_.disk.reset();
    parts_.quarantine.reset();
    std::error_code ignored;
    std::filesystem::remove_all(parts_.directory->path() + "/namespaces", ignored);
    parts_.directory->discard();
  }

 private:
  // A hole is healed.
  Result<bool> is_known(const BlockRecord& record) {
    if (record.tail) return !tails_.insert(record.hash).second;
    EMBER_ASSIGN(const std::optional<BlockRecord> here, parts_.disk->read_record(record.hash));
    return here && here->epoch != 0;
  }

  // A tail is durable at once, and the blocks that it hangs on are so only after a flush: it waits.
  Status keep_tail(BlockRecord record, std::vector<std::string> payloads) {
    waiting_bytes_ += record.stored_bytes();
    waiting_.emplace_back(std::move(record), std::move(payloads));
    return waiting_bytes_ < kMostWaitingBytes ? Status() : settle();
  }

  Status settle() {
    write_touches();
    EMBER_TRY(patiently([&] { return parts_.disk->flush(); }));
    for (const auto& [record, payloads] : waiting_) {
      EMBER_TRY(parts_.conversations->put_tail(record, payloads, true));
    }
    waiting_.clear();
    waiting_bytes_ = 0;
    return {};
  }

  Status put_with_room(BlockRecord& record, const std::vector<std::string>& payloads) {
    Status put = parts_.disk->put(record, payloads);
    if (put.ok() || put.error().code != ErrorCode::kCapacity) return put;
    EMBER_TRY(parts_.disk->make_room(record.stored_bytes()));
    return parts_.disk->put(record, payloads);
  }

  // A lost touch record costs an order of eviction, and no block.
  void write_touches() {
    static_cast<void>(parts_.disk->touch(touches_));
    touches_.clear();
  }

  StoreParts parts_;
  Taken taken_;
  std::set<BlockHash> tails_;
  std::vector<std::pair<BlockRecord, std::vector<std::string>>> waiting_;  // tails
  uint64_t waiting_bytes_ = 0;
  std::vector<std::pair<BlockHash, TouchRecord>> touches_;
};

// What a store has before the first block or turn.
bool is_of_making(const std::filesystem::directory_entry& entry) {
  constexpr std::string_view kNames[] = {"LOCK", "IDENTITY", "KEYS", "blocks", "conversations"};
  std::string name = entry.path().filename().string();
  if (name.ends_with(".tmp")) name.resize(name.size() - 4);  // before it was renamed
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Blocks and turns lie in tables and blob files, or in a log first.
bool holds_rows(const std::filesystem::directory_entry& entry) {
  const std::string kind = entry.path().extension().string();
  std::error_code unknown;
  return kind == ".sst" || kind == ".blob" || (kind == ".log" && entry.file_size(unknown) > 0);
}

}  // namespace

bool nothing_is_stored(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::recursive_directory_iterator it(path, error), end;
  for (; !error && it != end; it.increment(error)) {
    if (it.depth() == 0 ? !is_of_making(*it) : holds_rows(*it)) return false;
  }
  return !error || error == std::errc::no_such_file_or_directory;
}

Result<std::unique_ptr<RestingIntake>> RestingIntake::open(const std::string& path,
                                                           uint64_t disk_bytes,
                                                           const EncryptionOptions& encryption) {
  if (disk_bytes == 0) {
    EMBER_ASSIGN(disk_bytes, default_disk_bytes(path));
  }
  EMBER_ASSIGN(const DiskPlan plan, plan_disk(disk_bytes));
  EMBER_ASSIGN(StoreParts parts, StoreParts::open(path, plan, kMemtableBytes, kCacheBytes, nullptr,
                                                  encryption));
  const bool whole = parts.directory != nullptr && parts.disk != nullptr &&
                     parts.conversations != nullptr && parts.writable;
  if (!whole) {
    return Error{ErrorCode::kIo, path + ": cannot be written: " + parts.reason};
  }
  auto intake = std::make_unique<RestingIntakeImpl>(std::move(parts));
  EMBER_TRY(intake->find_tails());
  return std::unique_ptr<RestingIntake>(std::move(intake));
}

}  // namespace ember
