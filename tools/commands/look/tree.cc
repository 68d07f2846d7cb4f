// tree: draws who hangs under whom, with the sums of what hangs there.
#include "tools/commands/look/tree.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/look/block_tree.h"
#include "tools/commands/look/namespace_titles.h"
#include "tools/commands/look/prefix_text.h"
#include "tools/commands/progress.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

// Blocks of a run whose text is shown: more would not fit a line.
constexpr size_t kTextBlocks = 4;
constexpr size_t kMostTitleColumns = 60;

// Blocks in a row, each the only child of the one before.
struct Run {
  uint32_t first = kNoNode;
  uint32_t last = kNoNode;
  uint64_t blocks = 0;
  uint64_t tokens = 0;
};

class Drawing {
 public:
  Drawing(const TreeOptions& options, CommandIo& io, StoreReader& reader, const BlockTree& tree)
      : options_(options),
        io_(io),
        reader_(reader),
        tree_(tree),
        text_(reader),
        sums_(tree.subtree_sums()),
        now_us_(system_clock().unix_us()) {}

  Status run(uint32_t start) {
    EMBER_ASSIGN(titles_, namespace_titles(reader_, tree_.name_spaces()));
    std::vector<uint32_t> tops = start == kNoNode ? tree_.roots() : std::vector<uint32_t>{start};
    std::erase_if(tops, [this](uint32_t index) {
      return !passes(top_filter(), tree_, tree_.node(index), now_us_);
    });
    sort(tops);
    push(tops, "", 0);
    while (!open_.empty() && !io_.stopped()) {
      const Open next = open_.back();
      open_.pop_back();
      if (options_.limit > 0 && shown_ == options_.limit) {
        ++left_out_;  // this line and what is below it
        continue;
      }
      EMBER_TRY(show(next));
      ++shown_;
    }
    if (options_.json) return {};
    if (left_out_ > 0) io_.out << "and more (--limit 0 shows all)\n";
    const uint64_t unreadable = tree_.walked().unreadable;
    if (unreadable > 0) io_.out << counted(unreadable, "record") << " cannot be read\n";
    return {};
  }

 private:
  struct Open {
    uint32_t index = kNoNode;
    uint32_t depth = 0;
    std::string before;  // what is drawn at the left of its line
    bool last = false;   // of its siblings
  };

  BlockFilter top_filter() const {
    BlockFilter filter;
    filter.name_space = options_.filter.name_space;
    filter.scope = options_.filter.scope;
    return filter;
  }

  void sort(std::vector<uint32_t>& siblings) const {
    const auto by = [&](auto key) {
      std::stable_sort(siblings.begin(), siblings.end(),
                       [&](uint32_t a, uint32_t b) { return key(sums_[a]) > key(sums_[b]); });
    };
    switch (options_.order) {
      case TreeOrder::kBytes:
        by([](const BlockTree::Sums& s) { return s.stored_bytes; });
        break;
      case TreeOrder::kAge:
        by([](const BlockTree::Sums& s) { return s.last_use_unix_us; });
        break;
      case TreeOrder::kHits:
        by([](const BlockTree::Sums& s) { return s.hits; });
        break;
      case TreeOrder::kHash:
        break;
    }
  }

  void push(const std::vector<uint32_t>& siblings, const std::string& before, uint32_t depth) {
    for (auto it = siblings.rbegin(); it != siblings.rend(); ++it) {
      open_.push_back({*it, depth, before, it == siblings.rbegin()});
    }
  }

  Run run_from(uint32_t first) const {
    Run run{.first = first, .last = first, .blocks = 0, .tokens = 0};
    for (uint32_t at = first;; at = tree_.node(at).first_child) {
      const BlockNode& node = tree_.node(at);
      run.last = at;
      run.blocks += 1;
      run.tokens += node.tokens;
      const bool one_child = node.first_child != kNoNode &&
                             tree_.node(node.first_child).next_sibling == kNoNode &&
                             tree_.node(node.first_child).scope == node.scope;
      if (!one_child) return run;
    }
  }

  Result<std::optional<std::string>> text_of(const Run& run) {
    if (!options_.text) return std::optional<std::string>();
    std::vector<TokenId> tokens;
    uint32_t at = run.first;
    for (size_t i = 0; i < kTextBlocks; ++i, at = tree_.node(at).first_child) {
      EMBER_ASSIGN(const std::optional<BlockRecord> record, reader_.record(tree_.node(at).hash));
      if (!record) break;
      tokens.insert(tokens.end(), record->tokens.begin(), record->tokens.end());
      if (at == run.last) break;
    }
    return text_.of(tree_.name_spaces()[tree_.node(run.first).name_space], tokens);
  }

  Status show(const Open& open) {
    const Run run = run_from(open.index);
    EMBER_ASSIGN(const std::optional<std::string> text, text_of(run));
    if (options_.json) {
      print_json(open, run, text);
    } else {
      print_line(open, run, text);
    }
    if (options_.depth > 0 && open.depth + 1 >= options_.depth) return {};
    std::vector<uint32_t> children;
    for (uint32_t child = tree_.node(run.last).first_child; child != kNoNode;
         child = tree_.node(child).next_sibling) {
      children.push_back(child);
    }
    sort(children);
    const std::string below = open.depth == 0 ? "" : open.before + (open.last ? "   " : "│  ");
    push(children, below, open.depth + 1);
    return {};
  }

  void print_line(const Open& open, const Run& run, const std::optional<std::string>& text) {
    const BlockTree::Sums& sums = sums_[run.first];
    const BlockNode& first = tree_.node(run.first);
    std::string line = open.before;
    if (open.depth > 0) line += open.last ? "└─ " : "├─ ";
    line += first.hash.hex().substr(0, 12) + "  " + grouped(run.tokens) + " tok";
    const uint64_t all = sums.tokens;
    if (all != run.tokens) line += " of " + grouped(all);
    line += ", " + human_bytes(sums.stored_bytes) + ", " + counted(first.hits, "hit") + ", " +
            age_text(sums.last_use_unix_us, now_us_);
    if (tree_.scopes().size() > 1) line += ", " + one_line(tree_.scopes()[first.scope], 64);
    if (open.depth == 0 && titles_.size() > 1) {
      line += ", " + one_line(titles_[first.name_space], kMostTitleColumns);
    }
    if (first.orphan) line += ", unreachable";
    if (text) line += "  \"" + one_line(*text, 400) + '"';
    io_.out << (columns_of(line) > io_.width ? one_line(line, io_.width) : line) << '\n';
  }

  void print_json(const Open& open, const Run& run, const std::optional<std::string>& text) {
    const BlockTree::Sums& sums = sums_[run.first];
    const BlockNode& first = tree_.node(run.first);
    Json json = {{"hash", first.hash.hex()},
                 {"last_hash", tree_.node(run.last).hash.hex()},
                 {"parent", first.parent_hash.hex()},
                 {"depth", open.depth},
                 {"namespace", tree_.name_spaces()[first.name_space].hex()},
                 {"scope", tree_.scopes()[first.scope]},
                 {"position", first.position},
                 {"run_blocks", run.blocks},
                 {"run_tokens", run.tokens},
                 {"blocks", sums.blocks},
                 {"tails", sums.tails},
                 {"tokens", sums.tokens},
                 {"stored_bytes", sums.stored_bytes},
                 {"raw_bytes", sums.raw_bytes},
                 {"hits", first.hits},
                 {"last_use_unix_us", sums.last_use_unix_us},
                 {"unreachable", first.orphan}};
    if (text) json["text"] = valid_utf8(*text);
    io_.out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  }

  const TreeOptions& options_;
  CommandIo& io_;
  StoreReader& reader_;
  const BlockTree& tree_;
  PrefixText text_;
  std::vector<std::string> titles_;  // of the tree's namespaces
  const std::vector<BlockTree::Sums> sums_;
  const int64_t now_us_;
  std::vector<Open> open_;
  uint64_t shown_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace

Result<int> run_tree(const TreeOptions& options, CommandContext& context) {
  EMBER_TRY(check_filter(options.filter));
  EMBER_ASSIGN(const std::shared_ptr<StoreReader> reader, context.open_reader(options.store));
  EMBER_ASSIGN(const BlockTree tree, read_tree(*reader, context.io));
  EMBER_TRY(check_known(options.filter, tree));
  EMBER_ASSIGN(const uint32_t start, start_of(tree, options.filter.prefix));
  EMBER_TRY(Drawing(options, context.io, *reader, tree).run(start));
  context.io.out << std::flush;
  return kExitOk;
}

}  // namespace ember
