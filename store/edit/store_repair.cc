// Looking at the files of both databases, and making anew what does not work.
#include "store/store_repair.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "store/disk/ballast.h"
#include "store/disk/blocks_salvage.h"
#include "store/disk/conversations_salvage.h"
#include "store/disk/database_files.h"
#include "store/disk/renewed_folder.h"
#include "store/disk_plan.h"
#include "store/quarantine.h"
#include "store/store_directory.h"
#include "store/store_reader.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMemtableBytes = 32u << 20;
constexpr uint64_t kCacheBytes = 8u << 20;
constexpr uint64_t kSpareBytes = 64u << 20;  // beside a second copy

bool is_there(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// What a database's own opening and files say.
template <typename Open>
DatabaseTrouble look_at(const std::string& folder, const Open& open) {
  DatabaseTrouble trouble;
  trouble.half_repaired = is_there(folder + ".ready");
  if (!is_there(folder)) {
    trouble.reason = folder + ": is not there";
    return trouble;
  }
  const auto opened = open();
  // An open database knows its files: a table that a kill left half written is none of them.
  Result<std::vector<std::string>> files =
      opened.ok() ? (*opened)->verify_files() : Result<std::vector<std::string>>(opened.error());
  if (!files.ok()) trouble.reason = files.error().message;
  trouble.broken = files.ok() ? std::move(files).value() : broken_files(folder);
  return trouble;
}

// Whatever a value holds that is not as it must be, a table's checksum may agree with.
DatabaseTrouble look_at_conversations(const ConversationsOptions& options) {
  std::vector<std::string> unreadable;
  DatabaseTrouble trouble = look_at(options.directory, [&options, &unreadable] {
    Result<std::unique_ptr<Conversations>> opened = Conversations::open(options);
    if (opened.ok()) unreadable = unreadable_in(**opened);
    return opened;
  });
  if (trouble.reason.empty() && trouble.broken.empty()) trouble.unreadable = std::move(unreadable);
  return trouble;
}

class StoreRepairImpl final : public StoreRepair {
 public:
  StoreRepairImpl(std::unique_ptr<StoreDirectory> directory, const DiskPlan& plan)
      : directory_(std::move(directory)), path_(directory_->path()), plan_(plan) {
    look();
  }

  const DatabaseTrouble& blocks() const override { return blocks_; }
  const DatabaseTrouble& conversations() const override { return conversations_; }

  Result<Renewed> renew(const OnProgress& on_progress) override {
    Renewed done;
    const std::string aside = new_aside_folder(path_, system_clock().unix_us());
    // What an earlier repair had ready first; then it is looked at anew.
    for (const char* name : {"blocks", "conversations"}) {
      EMBER_ASSIGN(const bool finished, RenewedFolder(path_, name).finish(aside));
      if (finished) done.aside = aside;
    }
    if (blocks_.half_repaired || conversations_.half_repaired) look();
    if (blocks_.any()) EMBER_TRY(renew_blocks(aside, on_progress, done));
    if (conversations_.any()) EMBER_TRY(renew_conversations(aside, on_progress, done));
    if (!done.aside.empty()) list_kept(done);
    return done;
  }

 private:
  void look() {
    blocks_ = look_at(path_ + "/blocks", [this] {
      DiskTierOptions options = disk_options(path_ + "/blocks");
      options.read_only = true;
      options.scan_later = true;
      return DiskTier::open(options);
    });
    ConversationsOptions turns = turns_options(path_ + "/conversations");
    turns.read_only = true;
    conversations_ = look_at_conversations(turns);
  }

  DiskTierOptions disk_options(const std::string& folder) const {
    DiskTierOptions options;
    options.directory = folder;
    options.limit_bytes = plan_.blocks_bytes;
    options.memtable_bytes = kMemtableBytes;
    options.block_cache_bytes = kCacheBytes;
    options.sealer = directory_->sealer();
    return options;
  }

  ConversationsOptions turns_options(const std::string& folder) const {
    ConversationsOptions options;
    options.directory = folder;
    options.limit_bytes = plan_.conversations_bytes;
    options.sealer = directory_->sealer();
    return options;
  }

  Status check_space(const std::string& folder) const {
    const uint64_t wanted = directory_bytes(folder) + kSpareBytes;
    struct statvfs info {};
    if (::statvfs(path_.c_str(), &info) != 0) return {};
    const uint64_t free_bytes = uint64_t{info.f_bavail} * info.f_frsize;
    if (free_bytes >= wanted) return {};
    return {ErrorCode::kCapacity, folder + ": what can be saved is written beside it first, which "
                                           "may take " +
                                      human_bytes(wanted) + ", and " + human_bytes(free_bytes) +
                                      " are free: make space, or move the folder away"};
  }

  Status renew_blocks(const std::string& aside, const OnProgress& on_progress, Renewed& done) {
    const std::string old = path_ + "/blocks";
    EMBER_TRY(check_space(old));
    RenewedFolder folder(path_, "blocks");
    BlocksSalvageOptions options;
    options.from = old;
    EMBER_ASSIGN(const std::string fresh, folder.begin());
    options.into = disk_options(fresh);
    options.into.limit_bytes = std::max(plan_.blocks_bytes, 2 * directory_bytes(old) + kSpareBytes);
    options.into.free_floor_bytes = 0;
    options.secret = directory_->secret();
    const std::unique_ptr<Quarantine> quarantine =
        Quarantine::open(path_ + "/quarantine", plan_.quarantine_bytes);
    options.into.set_aside = [&quarantine](const QuarantineEntry& entry) {
      static_cast<void>(quarantine->keep(entry, system_clock().unix_us()));
    };
    options.on_progress = [&on_progress](double share) {
      return on_progress("saving blocks", share);
    };
    EMBER_ASSIGN(const BlocksSalvaged saved, salvage_blocks(options));
    EMBER_TRY(folder.put_in_place(aside));
    done.blocks = true;
    done.aside = aside;
    done.saved_blocks = saved.blocks;
    done.saved_bytes = saved.stored_bytes;
    done.holes = saved.holes;
    done.lost_blocks = saved.lost + saved.holes;
    done.unreadable_rows = saved.unreadable;
    remove_whole_files(aside + "/blocks", blocks_.broken, done);
    return {};
  }

  Status renew_conversations(const std::string& aside, const OnProgress& on_progress,
                             Renewed& done) {
    if (!on_progress("saving conversations", 0)) return {ErrorCode::kCancelled, "stopped"};
    const std::string old = path_ + "/conversations";
    EMBER_TRY(check_space(old));
    RenewedFolder folder(path_, "conversations");
    EMBER_ASSIGN(const std::string fresh, folder.begin());
    ConversationsOptions into = turns_options(fresh);
    into.limit_bytes = std::max(into.limit_bytes, 4 * directory_bytes(old) + kSpareBytes);
    EMBER_ASSIGN(ConversationsSalvaged saved, salvage_conversations(old, into));
    EMBER_TRY(folder.put_in_place(aside));
    done.conversations = true;
    done.aside = aside;
    done.saved_conversations = saved.conversations;
    done.saved_turns = saved.turns;
    done.saved_tails = saved.tails;
    done.cut_conversations = std::move(saved.cut);
    done.lost_conversations = std::move(saved.lost);
    return {};
  }

  // What was read whole is in the new database; nobody needs it twice. Where no file is known to be
  // broken (one may be missing), only what holds nothing goes.
  static void remove_whole_files(const std::string& folder, const std::vector<std::string>& broken,
                                 Renewed& done) {
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (std::find(broken.begin(), broken.end(), name) != broken.end()) continue;
      std::error_code gone;
      const uint64_t bytes = it->file_size(gone);
      if (broken.empty() && name != kBallastName && bytes > 0) continue;
      if (gone || !fs::remove(it->path(), gone)) continue;
      ++done.removed_files;
      done.removed_bytes += bytes;
    }
    fs::remove(folder, error);  // where nothing was kept: the broken ones were not there
  }

  static void list_kept(Renewed& done) {
    std::error_code error;
    fs::recursive_directory_iterator it(done.aside, error), end;
    for (; !error && it != end; it.increment(error)) {
      if (!it->is_regular_file(error)) continue;
      done.kept_files.push_back(it->path().lexically_relative(done.aside).string());
    }
    std::sort(done.kept_files.begin(), done.kept_files.end());
    if (!done.kept_files.empty()) return;
    fs::remove(done.aside, error);
    done.aside.clear();
  }

  const std::unique_ptr<StoreDirectory> directory_;
  const std::string path_;
  const DiskPlan plan_;
  DatabaseTrouble blocks_;
  DatabaseTrouble conversations_;
};

}  // namespace

std::vector<std::string> unreadable_in(Conversations& conversations) {
  std::vector<std::string> unreadable;
  const Result<std::vector<Conversation>> heads = conversations.list();
  if (!heads.ok()) return {heads.error().message};
  for (const Conversation& head : *heads) {
    const Result<Conversation> whole = conversations.load(head.id);
    const bool wrong = !whole.ok() && whole.error().code == ErrorCode::kCorruption;
    if (wrong) unreadable.push_back("conversation " + head.id + ": " + whole.error().message);
  }
  if (conversations.unreadable_heads() > 0) {
    unreadable.push_back("heads: " + std::to_string(conversations.unreadable_heads()));
  }
  const Result<Conversations::TailListing> tails = conversations.list_tails();
  if (!tails.ok()) unreadable.push_back(tails.error().message);
  if (tails.ok() && tails->unreadable > 0) {
    unreadable.push_back("tails: " + std::to_string(tails->unreadable));
  }
  return unreadable;
}

Result<std::unique_ptr<StoreRepair>> StoreRepair::open(const std::string& path,
                                                       const EncryptionOptions& encryption,
                                                       uint64_t disk_bytes, bool look_only) {
  // First whether there is one: opening to write would make it.
  EMBER_ASSIGN(std::unique_ptr<StoreDirectory> directory,
               StoreDirectory::open_read_only(path, encryption));
  if (!look_only) {
    EMBER_ASSIGN(directory, StoreDirectory::open(path, encryption));
    if (directory->read_only()) {
      return Error{ErrorCode::kIo, "nothing can be mended: " + why_not_writable(path)};
    }
  }
  const std::string& trouble = directory->key_trouble();
  if (!trouble.empty()) return Error{ErrorCode::kInvalidArgument, trouble};
  EMBER_ASSIGN(const DiskPlan plan, plan_disk(disk_bytes));
  return std::unique_ptr<StoreRepair>(
      std::make_unique<StoreRepairImpl>(std::move(directory), plan));
}

}  // namespace ember
