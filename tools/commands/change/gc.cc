// gc: plans, drops blocks, retires epochs one after the other, compacts.
#include "tools/commands/change/gc.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "store/disk_plan.h"
#include "tools/commands/change/gc_plan.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/look/block_filter.h"
#include "tools/commands/progress.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kLimitSlackShare = 16;  // of the limit, that stays free for what comes next

struct GcPlan {
  explicit GcPlan(BlockTree blocks) : tree(std::move(blocks)) {}
  BlockTree tree;
  RemovalPlan removal;
  std::vector<bool> unreachable;
  uint64_t unreachable_nodes = 0;
  uint64_t foreign_nodes = 0;
  uint64_t oldest_nodes = 0;  // for the limit
  std::vector<EpochChoice> epochs;
  uint64_t dead_bytes = 0;
  uint64_t live_bytes = 0;  // that are put again
};

class Collector {
 public:
  Collector(const GcOptions& options, CommandContext& context)
      : options_(options), context_(context), io_(context.io), progress_(context.io) {}

  Result<int> run() {
    const bool live = context_.open_live(options_.store).ok();
    if (live && options_.disk_bytes != 0) {
      return Error{ErrorCode::kInvalidArgument,
                   "--disk-bytes: the process that holds the store keeps it within its own limit"};
    }
    path_ = context_.path_of(options_.store);
    before_ = directory_bytes(path_);
    if (options_.dry_run) {
      EMBER_ASSIGN(const std::shared_ptr<StoreReader> reader, context_.open_reader(options_.store));
      EMBER_ASSIGN(const GcPlan plan, make_plan(*reader));
      report(plan, Erased{.blocks = plan.removal.sums.blocks, .tails = plan.removal.sums.tails,
                          .stored_bytes = plan.removal.sums.stored_bytes});
      return kExitOk;
    }
    EMBER_ASSIGN(const std::shared_ptr<StoreEditor> editor,
                 context_.open_editor(options_.store, limit_meanwhile()));
    EMBER_TRY(editor->settle());
    EMBER_ASSIGN(const GcPlan plan, make_plan(editor->reader()));
    EMBER_ASSIGN(const Erased erased, collect(plan, *editor));
    report(plan, erased);
    return kExitOk;
  }

 private:
  // What lives in an epoch is put again before the epoch goes: a lower limit is no room for both.
  uint64_t limit_meanwhile() const {
    if (options_.disk_bytes == 0) return 0;
    return std::max(options_.disk_bytes, before_ + before_ / 2);
  }

  Result<GcPlan> make_plan(StoreReader& reader) {
    FactsByHash facts;
    EMBER_ASSIGN(BlockTree tree, read_tree(reader, io_));
    progress_.show("reading records", 0);
    EMBER_TRY(reader.walk([&](const BlockSight& sight) {
      facts[sight.record.hash] = {sight.record.tail ? 0 : sight.record.epoch,
                                  sight.record.numerics_build};
      return !io_.stopped();
    }));
    if (io_.stopped()) return Error{ErrorCode::kCancelled, "stopped"};
    GcPlan plan(std::move(tree));
    plan.unreachable = unreachable_nodes(plan.tree);
    std::vector<bool> chosen = plan.unreachable;
    plan.unreachable_nodes = count(chosen);
    if (options_.foreign) {
      const std::vector<bool> foreign = foreign_nodes(plan.tree, facts);
      for (size_t i = 0; i < chosen.size(); ++i) {
        if (foreign[i] && !chosen[i]) ++plan.foreign_nodes;
        chosen[i] = chosen[i] || foreign[i];
      }
    }
    const std::vector<DiskTier::EpochUse> epochs = reader.epochs();
    uint64_t within = UINT64_MAX;
    if (options_.disk_bytes != 0) {
      EMBER_ASSIGN(within, most_payload(reader, epochs));
      uint64_t live = 0;
      for (const DiskTier::EpochUse& epoch : epochs) live += epoch.live_bytes;
      const uint64_t so_far = count(chosen);
      if (live > within) choose_oldest(plan.tree, live - within, chosen);
      plan.oldest_nodes = count(chosen) - so_far;
    }
    plan.removal = plan_removal(plan.tree, [&chosen](uint32_t index) { return chosen[index]; });
    plan.epochs =
        choose_epochs(epochs, plan.tree, plan.removal, facts,
                      static_cast<double>(options_.dead_percent) / 100.0, within);
    for (const EpochChoice& epoch : plan.epochs) {
      plan.dead_bytes += epoch.dead_bytes;
      plan.live_bytes += epoch.live_bytes;
    }
    return plan;
  }

  static uint64_t count(const std::vector<bool>& chosen) {
    return static_cast<uint64_t>(std::count(chosen.begin(), chosen.end(), true));
  }

  // What of groups fits within the limit: beside them stand metadata and what files carry. The
  // ballast has a share of its own, and is shortened to it.
  Result<uint64_t> most_payload(StoreReader& reader,
                                const std::vector<DiskTier::EpochUse>& epochs) const {
    EMBER_ASSIGN(const DiskPlan plan, plan_disk(options_.disk_bytes));
    uint64_t payload = 0;
    for (const DiskTier::EpochUse& epoch : epochs) payload += epoch.bytes;
    const uint64_t files = reader.disk_stats().file_bytes;
    const uint64_t carried = payload + ballast_bytes_of(path_);
    const uint64_t beside = files - std::min(files, carried);
    const uint64_t room = plan.blocks_bytes - plan.blocks_bytes / kLimitSlackShare;
    return room - std::min(room, beside);
  }

  Result<Erased> collect(const GcPlan& plan, StoreEditor& editor) {
    std::vector<EraseItem> items = erase_items(plan.tree, plan.removal);
    for (size_t i = 0; i < items.size(); ++i) {
      items[i].unreachable = plan.unreachable[plan.removal.going[i]];
    }
    Erased erased;
    if (!items.empty()) {
      EMBER_ASSIGN(erased, editor.erase(items, [&](uint64_t done) {
        progress_.show("dropping blocks",
                       static_cast<double>(done) / static_cast<double>(items.size()));
        return !io_.stopped();
      }));
    }
    for (size_t i = 0; i < plan.epochs.size(); ++i) {
      if (io_.stopped()) return Error{ErrorCode::kCancelled, "stopped"};
      progress_.show("rewriting epochs",
                     static_cast<double>(i) / static_cast<double>(plan.epochs.size()));
      EMBER_TRY(editor.retire_epoch(plan.epochs[i].epoch));
    }
    progress_.show("compacting", 1);
    EMBER_TRY(editor.compact());
    progress_.clear();
    return erased;
  }

  void report(const GcPlan& plan, const Erased& erased) {
    progress_.clear();
    const uint64_t after = options_.dry_run ? before_ : directory_bytes(path_);
    if (options_.json) {
      io_.out << Json({{"dry_run", options_.dry_run},
                       {"unreachable", plan.unreachable_nodes},
                       {"foreign", plan.foreign_nodes},
                       {"oldest", plan.oldest_nodes},
                       {"blocks", erased.blocks},
                       {"tails", erased.tails},
                       {"stored_bytes", erased.stored_bytes},
                       {"stayed", plan.removal.stayed() + erased.stayed()},
                       {"epochs", plan.epochs.size()},
                       {"dead_bytes", plan.dead_bytes},
                       {"rewritten_bytes", plan.live_bytes},
                       {"bytes_before", before_},
                       {"bytes_after", options_.dry_run ? Json(nullptr) : Json(after)}})
                     .dump()
              << std::endl;
      return;
    }
    const bool would = options_.dry_run;
    io_.out << (would ? "would drop " : "dropped ") << counted(erased.blocks, "block") << " and "
            << counted(erased.tails, "tail") << " (" << human_bytes(erased.stored_bytes) << "): "
            << grouped(plan.unreachable_nodes) << " that nothing reaches";
    if (options_.foreign) io_.out << ", " << grouped(plan.foreign_nodes) << " of other builds";
    if (options_.disk_bytes != 0) {
      io_.out << ", " << grouped(plan.oldest_nodes) << " of the oldest, for the limit";
    }
    const uint64_t stayed = plan.removal.stayed() + erased.stayed();
    if (stayed > 0) io_.out << "; " << grouped(stayed) << " stay that are in use, pinned or needed";
    io_.out << '\n'
            << (would ? "would rewrite " : "rewrote ") << counted(plan.epochs.size(), "epoch")
            << ": " << human_bytes(plan.dead_bytes) << " dead, "
            << human_bytes(plan.live_bytes) << " put again\n";
    if (would) {
      io_.out << "the store: " << human_bytes(before_) << "; nothing was changed";
    } else {
      io_.out << "the store: " << human_bytes(before_) << " before, " << human_bytes(after)
              << " now";
    }
    io_.out << std::endl;
  }

  const GcOptions& options_;
  CommandContext& context_;
  CommandIo& io_;
  Progress progress_;
  std::string path_;
  uint64_t before_ = 0;
};

}  // namespace

Result<int> run_gc(const GcOptions& options, CommandContext& context) {
  return Collector(options, context).run();
}

}  // namespace ember
