// ls: prints block and tail records in the order of their chains, or by age, hits or size.
#include "tools/commands/look/ls.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/look/block_lines.h"

namespace ember {
namespace {

class Listing {
 public:
  Listing(const LsOptions& options, CommandIo& io, StoreReader& reader)
      : options_(options),
        io_(io),
        lines_({.json = options.json, .text = options.text}, io, reader),
        limit_(options.limit == 0 ? UINT64_MAX : options.limit),
        now_us_(system_clock().unix_us()) {}

  Status run(StoreReader& reader) {
    if (options_.order == LsOrder::kNone && options_.filter.prefix.empty()) return stream(reader);
    EMBER_ASSIGN(const BlockTree tree, read_tree(reader, io_));
    EMBER_TRY(check_known(options_.filter, tree));
    EMBER_ASSIGN(const uint32_t start, start_of(tree, options_.filter.prefix));
    std::vector<uint32_t> chosen;
    tree.descend(start, [&](uint32_t index, uint32_t) {
      if (passes(options_.filter, tree, tree.node(index), now_us_)) chosen.push_back(index);
      return true;
    });
    sort(tree, chosen);
    lines_.header();
    for (size_t i = 0; i < chosen.size() && i < limit_ && !io_.stopped(); ++i) {
      EMBER_TRY(lines_.print(tree, tree.node(chosen[i])));
    }
    lines_.footer(chosen.size() > limit_ ? chosen.size() - limit_ : 0, tree.walked().unreadable);
    return {};
  }

 private:
  // A page at a time, as the records lie: no tree, no order.
  Status stream(StoreReader& reader) {
    uint64_t left_out = 0;
    uint64_t shown = 0;
    lines_.header();
    EMBER_ASSIGN(const StoreReader::Walked walked, reader.walk([&](const BlockSight& sight) {
      BlockTree one = BlockTree::of(sight);
      if (!passes(options_.filter, one, one.node(0), now_us_)) return true;
      if (shown == limit_) {
        ++left_out;
        return !io_.stopped();
      }
      ++shown;
      lines_.print(one, one.node(0), sight.record);
      return !io_.stopped();
    }));
    lines_.footer(left_out, walked.unreadable);
    return {};
  }

  void sort(const BlockTree& tree, std::vector<uint32_t>& chosen) const {
    const auto by = [&](auto key) {
      std::stable_sort(chosen.begin(), chosen.end(), [&](uint32_t a, uint32_t b) {
        return key(tree.node(a)) > key(tree.node(b));
      });
    };
    switch (options_.order) {
      case LsOrder::kAge:
        by([](const BlockNode& n) { return n.last_use_unix_us; });
        break;
      case LsOrder::kHits:
        by([](const BlockNode& n) { return n.hits; });
        break;
      case LsOrder::kBytes:
        by([](const BlockNode& n) { return n.stored_bytes; });
        break;
      case LsOrder::kTokens:
        by([](const BlockNode& n) { return n.tokens; });
        break;
      case LsOrder::kChain:
      case LsOrder::kNone:
        break;
    }
    if (options_.reverse) std::reverse(chosen.begin(), chosen.end());
  }

  const LsOptions& options_;
  CommandIo& io_;
  BlockLines lines_;
  const uint64_t limit_;
  const int64_t now_us_;
};

}  // namespace

Result<int> run_ls(const LsOptions& options, CommandContext& context) {
  EMBER_TRY(check_filter(options.filter));
  EMBER_ASSIGN(const std::shared_ptr<StoreReader> reader, context.open_reader(options.store));
  EMBER_TRY(Listing(options, context.io, *reader).run(*reader));
  context.io.out << std::flush;
  return kExitOk;
}

}  // namespace ember
