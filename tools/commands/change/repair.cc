// repair, stage by stage: databases that do not work, the index, proof, what nothing reaches.
#include "tools/commands/change/repair.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "store/ram_plan.h"
#include "store/store_repair.h"
#include "tools/commands/change/removal_plan.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/look/block_filter.h"
#include "tools/commands/look/block_proof.h"
#include "tools/commands/messages.h"
#include "tools/commands/progress.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostNamed = 20;

class Repairer {
 public:
  Repairer(const RepairOptions& options, CommandContext& context)
      : options_(options), context_(context), io_(context.io), progress_(context.io) {}

  Result<int> run() {
    if (!options_.dry_run) EMBER_TRY(context_.may_change(options_.store));
    json_["dry_run"] = options_.dry_run;
    const bool live = context_.open_live(options_.store).ok();
    if (live) {
      EMBER_TRY(look_at_live_files());
    } else {
      EMBER_TRY(renew_databases());
    }
    if (can_go_on_) EMBER_TRY(mend());
    progress_.clear();
    return finish();
  }

 private:
  void say(const std::string& line) {
    progress_.clear();
    if (!options_.json) io_.out << one_line(line, 4000) << '\n';
  }
  void not_mended(const std::string& what) {
    say(what);
    open_.push_back(what);
  }

  static std::string list(const std::vector<std::string>& names) {
    std::string text;
    for (size_t i = 0; i < names.size() && i < kMostNamed; ++i) {
      text += (i == 0 ? "" : ", ") + names[i];
    }
    if (names.size() > kMostNamed) text += " and " + grouped(names.size() - kMostNamed) + " more";
    return text;
  }

  // A table cannot be replaced under the process that has it open.
  Status look_at_live_files() {
    EMBER_ASSIGN(const std::shared_ptr<StoreReader> reader, context_.open_reader(options_.store));
    progress_.show("looking at files", 0);
    const Result<std::vector<std::string>> files = reader->verify_files();
    std::vector<std::string> broken =
        files.ok() ? *files : std::vector<std::string>{files.error().message};
    const std::vector<std::string> unreadable = unreadable_in(reader->conversations());
    broken.insert(broken.end(), unreadable.begin(), unreadable.end());
    if (broken.empty()) return {};
    json_["broken"] = broken;
    not_mended("broken: " + list(broken) +
               "; the process that holds the store has it open: end that, then run emberkv repair");
    return {};
  }

  Status renew_databases() {
    const std::string path = context_.path_of(options_.store);
    uint64_t limit = options_.disk_bytes;
    if (limit == 0) {
      EMBER_ASSIGN(limit, limit_for_changes(path, options_.store.encryption));
    }
    progress_.show("looking at files", 0);
    EMBER_ASSIGN(const std::unique_ptr<StoreRepair> repair,
                 StoreRepair::open(path, options_.store.encryption, limit, options_.dry_run));
    tell("blocks", repair->blocks());
    tell("conversations", repair->conversations());
    if (!repair->blocks().any() && !repair->conversations().any()) return {};
    found_ = true;
    if (options_.dry_run) {
      can_go_on_ = repair->blocks().reason.empty() && repair->conversations().reason.empty();
      if (!can_go_on_) say("what else there is shows when that is done");
      return {};
    }
    EMBER_ASSIGN(const Renewed done, repair->renew([this](const char* what, double share) {
      progress_.show(what, share);
      return !io_.stopped();
    }));
    tell(done);
    return {};
  }

  void tell(const std::string& name, const DatabaseTrouble& trouble) {
    Json& json = json_[name] = {{"reason", trouble.reason},
                                {"broken", trouble.broken},
                                {"unreadable", trouble.unreadable},
                                {"half_repaired", trouble.half_repaired}};
    if (!trouble.any()) return;
    json["renew"] = true;
    if (trouble.half_repaired) say(name + ": an earlier repair was cut short; it is finished");
    if (!trouble.broken.empty()) say(name + ": broken: " + list(trouble.broken));
    if (!trouble.reason.empty()) say(name + ": does not open: " + trouble.reason);
    if (!trouble.unreadable.empty()) say(name + ": cannot be read: " + list(trouble.unreadable));
    if (options_.dry_run) {
      say(name + ": would be made anew from what can be read and proven; what is broken would be "
                 "taken aside");
    }
  }

  void tell(const Renewed& done) {
    json_["renewed"] = {{"aside", done.aside},
                        {"kept_files", done.kept_files},
                        {"removed_files", done.removed_files},
                        {"removed_bytes", done.removed_bytes},
                        {"saved_blocks", done.saved_blocks},
                        {"saved_bytes", done.saved_bytes},
                        {"holes", done.holes},
                        {"lost_blocks", done.lost_blocks},
                        {"unreadable_rows", done.unreadable_rows},
                        {"saved_conversations", done.saved_conversations},
                        {"saved_turns", done.saved_turns},
                        {"saved_tails", done.saved_tails},
                        {"cut_conversations", done.cut_conversations},
                        {"lost_conversations", done.lost_conversations}};
    if (done.blocks) {
      say("blocks: made anew: " + grouped(done.saved_blocks) + " saved and proven (" +
          human_bytes(done.saved_bytes) + "), " + grouped(done.lost_blocks) +
          " lost, of which " + grouped(done.holes) + " stay as holes above saved ones; " +
          grouped(done.unreadable_rows) + " rows are no records");
    }
    if (done.conversations) {
      say("conversations: made anew: " + grouped(done.saved_conversations) + " with " +
          counted(done.saved_turns, "turn") + ", and " + counted(done.saved_tails, "tail"));
    }
    if (!done.cut_conversations.empty()) {
      say("conversations: turns at the end are missing of " + list(done.cut_conversations));
    }
    if (!done.lost_conversations.empty()) {
      say("conversations: can be resumed no more: " + list(done.lost_conversations));
    }
    if (!done.aside.empty()) {
      say("taken aside to " + done.aside + ": " + list(done.kept_files));
    }
    if (done.removed_files > 0) {
      say("removed " + grouped(done.removed_files) + " old files (" +
          human_bytes(done.removed_bytes) + "): whole, and all that was live in them was saved");
    }
  }

  Status mend() {
    std::shared_ptr<StoreEditor> editor;
    std::shared_ptr<StoreReader> reader;
    if (options_.dry_run) {
      EMBER_ASSIGN(reader, context_.open_reader(options_.store));
      EMBER_TRY(tell_reindexed(look_at_index()));
    } else {
      EMBER_ASSIGN(editor, context_.open_editor(options_.store, options_.disk_bytes));
      reader = std::shared_ptr<StoreReader>(editor, &editor->reader());
      EMBER_TRY(editor->settle());
      EMBER_TRY(tell_reindexed(editor->reindex(false)));
    }
    if (options_.verify) EMBER_TRY(prove(*reader, editor.get()));
    EMBER_TRY(drop_unreachable(*reader, editor.get()));
    progress_.clear();
    const std::string health = reader->facts().health;
    json_["health"] = health;
    if (health != "ok") not_mended("the store: " + health);
    return {};
  }

  Result<DiskTier::Reindexed> look_at_index() {
    if (context_.open_live(options_.store).ok()) {
      EMBER_ASSIGN(const std::shared_ptr<StoreEditor> editor,
                   context_.open_editor(options_.store, options_.disk_bytes));
      return editor->reindex(true);
    }
    EMBER_ASSIGN(const RestingParts parts, RestingParts::open(context_.path_of(options_.store),
                                                              options_.store.encryption));
    return parts.disk->reindex(true);
  }

  Status tell_reindexed(const Result<DiskTier::Reindexed>& done) {
    if (!done.ok()) {
      not_mended("the index cannot be made anew: " + done.error().message);
      return {};
    }
    json_["index"] = {{"epochs", done->epochs},
                      {"unreadable", done->unreadable},
                      {"touches", done->touches}};
    if (done->epochs + done->unreadable + done->touches == 0) return {};
    found_ = true;
    say("index: " + grouped(done->epochs) + " rows of epochs " + would("written anew") + ", " +
        counted(done->unreadable, "record") + " that cannot be read " + would("set aside") + ", " +
        grouped(done->touches) + " rows of uses that belong to nothing " + would("dropped"));
    return {};
  }

  std::string would(const std::string& done) const {
    return (options_.dry_run ? "would be " : "") + done;
  }

  Status prove(StoreReader& reader, StoreEditor* editor) {
    EMBER_ASSIGN(const BlockTree tree, read_tree(reader, io_));
    BlockProof proof(reader, io_, options_.bytes_per_second);
    uint64_t proven = 0, wrong = 0, passed_over = 0;
    std::vector<std::string> names;
    for (uint32_t i = 0; i < tree.nodes().size(); ++i) {
      if (io_.stopped()) return {ErrorCode::kCancelled, "stopped"};
      progress_.show("proving blocks",
                     static_cast<double>(i) / static_cast<double>(tree.nodes().size()));
      const BlockNode& node = tree.node(i);
      const Result<std::optional<BlockRecord>> record = reader.record(node.hash);
      if (!record.ok() || !*record) continue;  // gone since
      const Status status = proof.prove(**record);
      if (status.ok()) {
        ++proven;
      } else if (status.error().code == ErrorCode::kBusy) {
        ++passed_over;
      } else if (status.error().code == ErrorCode::kCorruption) {
        bool condemned = true;
        if (editor != nullptr) {
          EMBER_ASSIGN(condemned, editor->condemn(**record, node.first_child != kNoNode,
                                                  status.error().message + " (repair)"));
        }
        wrong += condemned ? 1u : 0u;
        if (condemned) names.push_back(node.hash.hex());
      } else {
        not_mended("block " + node.hash.hex() + " cannot be read: " + status.error().message);
      }
    }
    progress_.clear();
    json_["proof"] = {{"proven", proven}, {"wrong", wrong}, {"passed_over", passed_over},
                      {"hashes", names}};
    found_ = found_ || wrong > 0;
    say("proven: " + grouped(proven) + " blocks and tails");
    if (wrong > 0) {
      say("wrong: " + grouped(wrong) + ", " + would("kept in quarantine and given up") + ": " +
          list(names));
    }
    return {};
  }

  // What a running process reaches by now stays.
  Status drop_unreachable(StoreReader& reader, StoreEditor* editor) {
    EMBER_ASSIGN(const BlockTree tree, read_tree(reader, io_));
    const std::vector<bool> unreachable = unreachable_nodes(tree);
    const RemovalPlan plan =
        plan_removal(tree, [&unreachable](uint32_t index) { return unreachable[index]; });
    Erased erased{.blocks = plan.sums.blocks, .tails = plan.sums.tails,
                  .stored_bytes = plan.sums.stored_bytes};
    std::vector<std::string> names;
    for (const uint32_t index : plan.going) names.push_back(tree.node(index).hash.hex());
    if (editor != nullptr && !plan.going.empty()) {
      progress_.show("dropping what nothing reaches", 0);
      EMBER_ASSIGN(erased, editor->erase(erase_items(tree, plan, true),
                                         [this](uint64_t) { return !io_.stopped(); }));
    }
    json_["unreachable"] = {{"blocks", erased.blocks},
                            {"tails", erased.tails},
                            {"stored_bytes", erased.stored_bytes},
                            {"hashes", names}};
    if (plan.going.empty()) return {};
    found_ = true;
    say("unreachable: " + counted(erased.blocks, "block") + " and " +
        counted(erased.tails, "tail") +
        ", " + human_bytes(erased.stored_bytes) + ", whose parent is not there, " +
        would("dropped") + ": " + list(names));
    return {};
  }

  Result<int> finish() {
    json_["found"] = found_;
    json_["not_mended"] = open_;
    const bool good = open_.empty();
    if (options_.json) {
      io_.out << json_.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
    } else if (good) {
      io_.out << (!found_             ? "nothing to mend"
                  : options_.dry_run ? "nothing was changed; without --dry-run this is mended"
                                     : "mended")
              << std::endl;
    }
    if (!good) {
      print_error(io_.err, "not all was mended: " + open_.front());
    }
    return good ? kExitOk : kExitFailed;
  }

  const RepairOptions& options_;
  CommandContext& context_;
  CommandIo& io_;
  Progress progress_;
  Json json_;
  bool found_ = false;
  bool can_go_on_ = true;
  std::vector<std::string> open_;  // what is wrong still
};

}  // namespace

Result<int> run_repair(const RepairOptions& options, CommandContext& context) {
  const Result<int> code = Repairer(options, context).run();
  if (code.ok() || code.error().code != ErrorCode::kCorruption) return code;
  return Error{code.error().code,
               code.error().message + "; nothing in the store replaces that: take this file from a "
                                      "copy of the store, or move the store away"};
}

}  // namespace ember
