// Following a prompt's hashes down the tree, and finding the nearest relative where they end.
#include "tools/commands/look/prompt_match.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "store/tenants.h"

namespace ember {
namespace {

// Siblings that are compared with a prompt at the place where it leaves the tree.
constexpr size_t kMostRelatives = 4096;
// Of what the store has in the place of a prompt's token.
constexpr size_t kMostOtherTokens = 64;

class Matcher {
 public:
  // `root_scope`: where the chain begins; it may go over to `scope` once, at a block's boundary.
  Matcher(StoreReader& reader, const BlockTree& tree, TokenSpan prompt, const std::string& scope,
          const std::string& root_scope, PromptMatch& match)
      : reader_(reader),
        tree_(tree),
        prompt_(prompt),
        match_(match),
        scope_(scope),
        root_scope_(root_scope),
        own_(reader.secret(), match.name_space, scope),
        root_(reader.secret(), match.name_space, root_scope) {}

  Status run() {
    find_block_tokens();
    if (match_.block_tokens == 0) return {};
    parent_ = root_.root();
    const size_t most = prompt_.empty() ? 0 : prompt_.size() - 1;
    while (match_.tokens < most && match_.tokens + match_.block_tokens <= prompt_.size()) {
      const TokenSpan block = prompt_.subspan(match_.tokens, match_.block_tokens);
      EMBER_ASSIGN(const std::optional<uint32_t> node, child(block));
      if (!node) break;
      if (tree_.node(*node).damaged) {
        match_.end = MatchEnd::kDamaged;
        match_.other = tree_.node(*node).hash;
        return {};
      }
      take(*node, std::min<size_t>(block.size(), most - match_.tokens));
      parent_ = tree_.node(*node).hash;
      last_ = *node;
    }
    if (match_.tokens >= most) {
      match_.end = MatchEnd::kWhole;
      return {};
    }
    return follow_relative(most);
  }

 private:
  bool of_build(const BlockNode& node) const {
    return !match_.build || tree_.builds()[node.build] == *match_.build;
  }

  bool in_scope(const BlockNode& node, const std::string& scope) const {
    return tree_.name_spaces()[node.name_space] == match_.name_space && of_build(node) &&
           tree_.scopes()[node.scope] == scope;
  }

  void find_block_tokens() {
    for (const BlockNode& node : tree_.nodes()) {
      if (!in_scope(node, scope_) && !in_scope(node, root_scope_)) continue;
      match_.end = MatchEnd::kUnknown;
      // A store of tails alone has no full block to go by.
      match_.block_tokens = std::max(match_.block_tokens, node.tokens);
      if (!node.tail) break;
    }
  }

  // The block of these tokens below the last one: of the root's scope as long as the chain is in
  // it, else of the request's own.
  Result<std::optional<uint32_t>> child(TokenSpan block) {
    if (!private_) {
      EMBER_ASSIGN(const std::optional<uint32_t> found,
                   below_last(root_.next(parent_, block), block));
      if (found) return found;
    }
    EMBER_ASSIGN(const std::optional<uint32_t> found, below_last(own_.next(parent_, block), block));
    private_ = private_ || found.has_value();
    return found;
  }

  Result<std::optional<uint32_t>> below_last(const BlockHash& hash, TokenSpan block) {
    for (const uint32_t index : tree_.find(hash.hex())) {
      const BlockNode& node = tree_.node(index);
      if (node.parent != last_ || node.tail || !of_build(node)) continue;
      EMBER_ASSIGN(const std::optional<BlockRecord> record, reader_.record(hash));
      if (!record ||
          !std::equal(block.begin(), block.end(), record->tokens.begin(), record->tokens.end())) {
        continue;
      }
      return std::optional<uint32_t>(index);
    }
    return std::optional<uint32_t>();
  }

  void take(uint32_t node, size_t tokens) {
    if (tokens == 0) return;
    const uint8_t tiers = tree_.node(node).tiers;
    size_t tier = 0;
    while (tier + 1 < kTierCount && (tiers >> tier & 1u) == 0) ++tier;
    const Tier best = static_cast<Tier>(tier);
    if (match_.runs.empty() || match_.runs.back().tier != best) match_.runs.push_back({best, 0});
    match_.runs.back().tokens += tokens;
    match_.tokens += tokens;
    match_.nodes.push_back(node);
  }

  // Blocks of the request's own scope that begin where the match ends. Those of another scope agree
  // whole or not at all.
  std::vector<uint32_t> relatives() const {
    std::vector<uint32_t> list;
    const auto add = [&](uint32_t index) {
      const BlockNode& node = tree_.node(index);
      if (!node.orphan && !node.damaged && in_scope(node, scope_)) list.push_back(index);
      return list.size() < kMostRelatives;
    };
    if (last_ == kNoNode) {
      for (const uint32_t root : tree_.roots()) {
        if (!add(root)) break;
      }
      return list;
    }
    uint32_t at = tree_.node(last_).first_child;
    while (at != kNoNode && add(at)) at = tree_.node(at).next_sibling;
    return list;
  }

  struct Relative {
    uint32_t node = kNoNode;
    size_t common = 0;
    BlockRecord record;
  };

  // The one that agrees longest; of equals the most used.
  Result<Relative> nearest() {
    const TokenSpan rest = prompt_.subspan(match_.tokens);
    Relative best;
    for (const uint32_t index : relatives()) {
      EMBER_ASSIGN(std::optional<BlockRecord> record, reader_.record(tree_.node(index).hash));
      if (!record) continue;
      const auto split =
          std::mismatch(rest.begin(), rest.end(), record->tokens.begin(), record->tokens.end());
      const auto common = static_cast<size_t>(split.first - rest.begin());
      const bool more_used =
          best.node != kNoNode && tree_.node(index).hits > tree_.node(best.node).hits;
      const bool better =
          best.node == kNoNode || common > best.common || (common == best.common && more_used);
      if (better) best = {index, common, std::move(*record)};
    }
    return best;
  }

  // A record is used as far as it agrees.
  Status follow_relative(size_t most) {
    EMBER_ASSIGN(const Relative best, nearest());
    if (best.node == kNoNode) return {};
    take(best.node, std::min(best.common, most - match_.tokens));
    const bool whole = match_.tokens >= most;
    const bool differs = best.common < best.record.tokens.size();
    match_.end = whole ? MatchEnd::kWhole : differs ? MatchEnd::kDiffers : MatchEnd::kUnknown;
    if (match_.end != MatchEnd::kDiffers) return {};
    match_.other = best.record.hash;
    const TokenSpan theirs = TokenSpan(best.record.tokens).subspan(best.common);
    const TokenSpan shown = theirs.first(std::min(theirs.size(), kMostOtherTokens));
    match_.other_tokens.assign(shown.begin(), shown.end());
    return {};
  }

  StoreReader& reader_;
  const BlockTree& tree_;
  const TokenSpan prompt_;
  PromptMatch& match_;
  const std::string& scope_;
  const std::string& root_scope_;
  const BlockHasher own_;
  const BlockHasher root_;
  BlockHash parent_;
  uint32_t last_ = kNoNode;
  bool private_ = false;
};

}  // namespace

Result<PromptMatch> match_prompt(StoreReader& reader, const BlockTree& tree, TokenSpan prompt,
                                 const MatchPlace& place) {
  PromptMatch own;
  own.name_space = place.name_space;
  own.build = place.build;
  PromptMatch published = own;
  EMBER_TRY(Matcher(reader, tree, prompt, place.scope, place.scope, own).run());
  const std::string shared(kSharedScopeName);
  if (place.scope == shared) return own;
  EMBER_TRY(Matcher(reader, tree, prompt, place.scope, shared, published).run());
  return published.tokens > own.tokens ? published : own;
}

}  // namespace ember
