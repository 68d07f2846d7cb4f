// rm: chooses, plans, asks, and hands the plan to the editor.
#include "tools/commands/change/rm.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "tools/commands/change/forget.h"
#include "tools/commands/change/removal_plan.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/look/block_lines.h"
#include "tools/commands/look/conversation_blocks.h"
#include "tools/commands/look/conversations.h"
#include "tools/commands/messages.h"
#include "tools/commands/progress.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostShown = 20;  // blocks that are listed before one is asked

// Whether blocks are chosen by anything but their scope: that alone is forgetting.
bool has_filter(BlockFilter filter) {
  filter.scope.clear();
  return filter != BlockFilter{};
}

struct Removal {
  explicit Removal(BlockTree blocks) : tree(std::move(blocks)) {}
  BlockTree tree;
  RemovalPlan plan;
  uint64_t shared = 0;  // of the conversation's, with other conversations
  std::optional<Conversation> conversation;
  ConversationClaim claim;  // nobody talks in it while it goes
};

class Remover {
 public:
  Remover(const RmOptions& options, CommandContext& context)
      : options_(options), context_(context), io_(context.io) {}

  Result<int> run() {
    if (options_.consent.dry_run) {
      EMBER_ASSIGN(const std::shared_ptr<StoreReader> reader, context_.open_reader(options_.store));
      EMBER_ASSIGN(const Removal removal, choose(*reader));
      EMBER_TRY(show(removal, *reader, options_.json ? SIZE_MAX : kMostShown));
      report(removal, nullptr);
      return kExitOk;
    }
    EMBER_ASSIGN(const std::shared_ptr<StoreEditor> editor,
                 context_.open_editor(options_.store, 0));
    EMBER_TRY(editor->settle());
    EMBER_ASSIGN(const Removal removal, choose(editor->reader()));
    if (!options_.consent.yes && !nothing_in(removal)) {
      // With --json the blocks alone are shown, and the question says what they come to.
      EMBER_TRY(show(removal, editor->reader(), kMostShown));
      if (!options_.json) io_.out << summary(removal) << '\n';
      const std::string what = options_.json ? summary(removal) : "this";
      if (!confirm(options_.consent, "remove " + what, io_)) return kExitFailed;
    }
    return remove(removal, *editor);
  }

 private:
  static bool nothing_in(const Removal& removal) {
    return removal.plan.going.empty() && !removal.conversation;
  }

  Result<Removal> choose(StoreReader& reader) {
    EMBER_ASSIGN(BlockTree tree, read_tree(reader, io_));
    Removal removal(std::move(tree));
    EMBER_TRY(options_.conversation.empty() ? choose_by_filter(removal)
                                            : choose_conversation(reader, removal));
    return removal;
  }

  Status choose_by_filter(Removal& removal) const {
    const BlockTree& tree = removal.tree;
    const int64_t now_us = system_clock().unix_us();
    EMBER_TRY(check_known(options_.filter, tree));
    EMBER_ASSIGN(const uint32_t start, start_of(tree, options_.filter.prefix));
    std::vector<bool> chosen(tree.nodes().size(), false);
    tree.descend(start, [&](uint32_t index, uint32_t) {
      chosen[index] = passes(options_.filter, tree, tree.node(index), now_us);
      return true;
    });
    removal.plan = plan_removal(tree, [&chosen](uint32_t index) { return chosen[index]; });
    return {};
  }

  // What other conversations say too stays.
  Status choose_conversation(StoreReader& reader, Removal& removal) {
    Conversations& conversations = reader.conversations();
    EMBER_ASSIGN(removal.conversation, load_conversation(conversations, options_.conversation));
    const std::string& id = removal.conversation->id;
    EMBER_ASSIGN(removal.claim, context_.claim(id));
    if (options_.keep_blocks) return {};
    const BlockTree& tree = removal.tree;
    std::vector<bool> chosen(tree.nodes().size(), false);
    EMBER_ASSIGN(const std::vector<uint32_t> own, blocks_of(*removal.conversation, reader, tree));
    for (const uint32_t index : own) chosen[index] = true;
    EMBER_ASSIGN(const std::vector<Conversation> heads, conversations.list());
    for (const Conversation& head : heads) {
      if (head.id == id || head.name_space != removal.conversation->name_space) continue;
      const Result<Conversation> other = conversations.load(head.id);
      if (!other.ok()) continue;  // whatever it was, it cannot be resumed
      EMBER_ASSIGN(const std::vector<uint32_t> others, blocks_of(*other, reader, tree));
      for (const uint32_t index : others) {
        removal.shared += chosen[index] ? 1u : 0u;
        chosen[index] = false;
      }
    }
    removal.plan = plan_removal(tree, [&chosen](uint32_t index) { return chosen[index]; });
    return {};
  }

  Status show(const Removal& removal, StoreReader& reader, size_t most) {
    if (removal.plan.going.empty()) return {};
    std::vector<uint32_t> going = removal.plan.going;
    std::reverse(going.begin(), going.end());  // parents first, as one reads
    BlockLines lines({.json = options_.json, .text = true}, io_, reader);
    lines.header();
    for (size_t i = 0; i < going.size() && i < most && !io_.stopped(); ++i) {
      EMBER_TRY(lines.print(removal.tree, removal.tree.node(going[i])));
    }
    lines.footer(going.size() > most ? going.size() - most : 0, 0);
    return {};
  }

  Result<int> remove(const Removal& removal, StoreEditor& editor) {
    Progress progress(io_);
    const std::vector<EraseItem> items = erase_items(removal.tree, removal.plan);
    EMBER_ASSIGN(const Erased erased, editor.erase(items, [&](uint64_t done) {
      progress.show("removing blocks",
                    static_cast<double>(done) / static_cast<double>(items.size() + 1));
      return !io_.stopped();
    }));
    progress.clear();
    // Last: as long as it is there, a run that was cut short can be repeated.
    if (removal.conversation) EMBER_TRY(editor.remove_conversation(removal.conversation->id));
    report(removal, &erased);
    return kExitOk;
  }

  std::string summary(const Removal& removal) const {
    const BlockTree::Sums& sums = removal.plan.sums;
    std::string text = counted(sums.blocks, "block") + " and " + counted(sums.tails, "tail") +
                       ", " + human_bytes(sums.stored_bytes);
    if (removal.conversation) text = "conversation " + removal.conversation->id + ", " + text;
    if (removal.shared > 0) {
      text += "; " + counted(removal.shared, "block") + " stay that other conversations share";
    }
    return text + stayed_text(removal.plan.pinned, removal.plan.in_use, removal.plan.needed);
  }

  static std::string stayed_text(uint64_t pinned, uint64_t in_use, uint64_t needed) {
    std::string text;
    if (pinned > 0) text += "; " + grouped(pinned) + " stay that are pinned";
    if (in_use > 0) text += "; " + grouped(in_use) + " stay that requests use";
    if (needed > 0) text += "; " + grouped(needed) + " stay for what hangs under them";
    return text;
  }

  // `erased` null: with --dry-run.
  void report(const Removal& removal, const Erased* erased) {
    const RemovalPlan& plan = removal.plan;
    Erased all{.blocks = plan.sums.blocks,
               .tails = plan.sums.tails,
               .stored_bytes = plan.sums.stored_bytes};
    if (erased != nullptr) all = *erased;
    all.pinned += plan.pinned;
    all.in_use += plan.in_use;
    all.needed += plan.needed;
    if (options_.json) {
      io_.out << Json({{"dry_run", erased == nullptr},
                       {"blocks", all.blocks},
                       {"tails", all.tails},
                       {"stored_bytes", all.stored_bytes},
                       {"conversation",
                        removal.conversation ? Json(removal.conversation->id) : Json(nullptr)},
                       {"shared", removal.shared},
                       {"pinned", all.pinned},
                       {"in_use", all.in_use},
                       {"needed", all.needed}})
                     .dump()
              << std::endl;
      return;
    }
    if (erased == nullptr) {
      io_.out << "would remove " << summary(removal) << std::endl;
      return;
    }
    io_.out << "removed ";
    if (removal.conversation) io_.out << "conversation " << removal.conversation->id << ", ";
    io_.out << counted(all.blocks, "block") << " and " << counted(all.tails, "tail") << ", "
            << human_bytes(all.stored_bytes) << stayed_text(all.pinned, all.in_use, all.needed);
    if (all.blocks > 0) {
      io_.out << "; their bytes are given back when their epochs are retired to make room, or now "
                 "with emberkv gc";
    }
    io_.out << std::endl;
  }

  const RmOptions& options_;
  CommandContext& context_;
  CommandIo& io_;
};

}  // namespace

Result<int> run_rm(const RmOptions& options, CommandContext& context) {
  EMBER_TRY(check_filter(options.filter));
  CommandIo& io = context.io;
  const bool by_filter = has_filter(options.filter) || !options.filter.scope.empty();
  if (by_filter == !options.conversation.empty()) {
    print_error(io.err, by_filter ? "--conversation goes with no other choice of blocks"
                                  : "say what to remove: --prefix, --conversation, --scope, "
                                    "--unused-for, or another choice (emberkv rm --help)");
    return kExitUsage;
  }
  if (!can_consent(options.consent, io)) return kExitUsage;
  if (by_filter && !has_filter(options.filter)) {
    ForgetOptions forget;
    forget.store = options.store;
    forget.request.scope = options.filter.scope;
    forget.request.dry_run = options.consent.dry_run;
    forget.json = options.json;
    if (!options.consent.dry_run &&
        !confirm(options.consent, "remove all of scope " + options.filter.scope, io)) {
      return kExitFailed;
    }
    return run_forget(forget, context);
  }
  return Remover(options, context).run();
}

}  // namespace ember
