// diff: names every block by its tokens, and shows the prefixes that only one of two stores has.
#include "tools/commands/look/diff.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/framed_text.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/look/block_filter.h"
#include "tools/commands/look/block_tree.h"
#include "tools/commands/look/prefix_text.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

// A store with a name for each block that any store with the same tokens would give it.
struct Side {
  std::shared_ptr<StoreReader> reader;
  BlockTree tree;
  std::vector<BlockHash> names;  // by node; zeros: its record cannot be read
};

Result<Side> look(const StoreChoice& choice, CommandContext& context) {
  Side side;
  EMBER_ASSIGN(side.reader, context.open_reader(choice));
  EMBER_ASSIGN(side.tree, read_tree(*side.reader, context.io));
  side.names.resize(side.tree.nodes().size());
  std::optional<Error> failure;
  side.tree.descend(kNoNode, [&](uint32_t index, uint32_t) {
    if (failure || context.io.stopped()) return false;
    const BlockNode& node = side.tree.node(index);
    const Result<std::optional<BlockRecord>> record = side.reader->record(node.hash);
    if (!record.ok()) failure = record.error();
    if (!record.ok() || !*record) return false;
    std::string framed(side.tree.name_spaces()[node.name_space].view());
    append_text(framed, side.tree.scopes()[node.scope]);
    if (node.parent != kNoNode) framed += side.names[node.parent].view();
    framed += node.orphan ? 'o' : 'b';
    for (const TokenId token : (*record)->tokens) append_value(framed, token);
    side.names[index] = digest128(as_bytes(framed));
    return true;
  });
  if (failure) return *failure;
  return side;
}

// A prefix that only one side has: its first block there, and all below it.
struct Only {
  uint32_t node = kNoNode;
  BlockTree::Sums sums;
};

std::vector<Only> only_in(const Side& side, const Side& other) {
  const std::unordered_set<BlockHash> known(other.names.begin(), other.names.end());
  std::vector<Only> found;
  uint32_t top = kNoNode;
  uint32_t top_depth = 0;
  side.tree.descend(kNoNode, [&](uint32_t index, uint32_t depth) {
    if (known.contains(side.names[index])) {
      top = kNoNode;
      return true;
    }
    const bool below = top != kNoNode && depth > top_depth;
    if (!below) {
      top = index;
      top_depth = depth;
      found.push_back({index, {}});
    }
    found.back().sums.add(side.tree.node(index));
    return true;
  });
  std::stable_sort(found.begin(), found.end(), [](const Only& a, const Only& b) {
    return a.sums.stored_bytes > b.sums.stored_bytes;
  });
  return found;
}

class Report {
 public:
  Report(const DiffOptions& options, CommandIo& io)
      : options_(options),
        io_(io),
        table_({{"only in"},
                {"prefix"},
                {"from", true},
                {"tokens", true},
                {"blocks", true},
                {"bytes", true},
                {""}}) {}

  Status add(const char* where, const Side& side, const std::vector<Only>& list) {
    PrefixText text(*side.reader);
    for (const Only& only : list) {
      ++found_;
      if (options_.limit > 0 && shown_ == options_.limit) continue;
      ++shown_;
      const BlockNode& node = side.tree.node(only.node);
      const NamespaceHash& name_space = side.tree.name_spaces()[node.name_space];
      std::optional<std::string> words;
      if (options_.text) {
        EMBER_ASSIGN(const std::optional<BlockRecord> record, side.reader->record(node.hash));
        if (record) words = text.of(name_space, record->tokens);
      }
      const std::string& scope = side.tree.scopes()[node.scope];
      if (options_.json) {
        print_json(where, node, name_space, scope, only.sums, words);
      } else {
        table_.add({where, node.hash.hex().substr(0, 16), std::to_string(node.position),
                    grouped(only.sums.tokens), grouped(only.sums.blocks + only.sums.tails),
                    human_bytes(only.sums.stored_bytes), one_line(words.value_or(""), 200)});
      }
    }
    return {};
  }

  int end() {
    if (!options_.json) {
      if (found_ > 0) io_.out << table_.text(io_.width, io_.colour);
      if (shown_ < found_) io_.out << "and " << grouped(found_ - shown_) << " more\n";
      io_.out << (found_ == 0 ? "both know the same\n" : "") << std::flush;
    }
    return found_ == 0 ? kExitOk : kExitFailed;
  }

 private:
  void print_json(const char* where, const BlockNode& node, const NamespaceHash& name_space,
                  const std::string& scope, const BlockTree::Sums& sums,
                  const std::optional<std::string>& words) {
    Json json = {
        {"only_in", where},      {"hash", node.hash.hex()},   {"namespace", name_space.hex()},
        {"scope", scope},        {"position", node.position}, {"tokens", sums.tokens},
        {"blocks", sums.blocks}, {"tails", sums.tails},       {"stored_bytes", sums.stored_bytes}};
    if (words) json["text"] = valid_utf8(*words);
    io_.out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  }

  const DiffOptions& options_;
  CommandIo& io_;
  TextTable table_;
  uint64_t found_ = 0;
  uint64_t shown_ = 0;
};

// Only the process that holds the store named by --store is asked.
Result<Side> look_at_second(StoreChoice choice, const std::string& path, CommandContext& context) {
  choice.path = path;
  Result<Side> side = look(choice, context);
  if (side.ok() || side.error().code != ErrorCode::kBusy) return side;
  return Error{ErrorCode::kBusy,
               path + ": a process holds it, and only that of --store is asked: change the two "
                      "places, or compare with --read-only, as of the last flush"};
}

}  // namespace

Result<int> run_diff(const DiffOptions& options, CommandContext& context) {
  EMBER_ASSIGN(const Side first, look(options.store, context));
  EMBER_ASSIGN(const Side second, look_at_second(options.store, options.other, context));
  Report report(options, context.io);
  EMBER_TRY(report.add("first", first, only_in(first, second)));
  EMBER_TRY(report.add("second", second, only_in(second, first)));
  return report.end();
}

}  // namespace ember
