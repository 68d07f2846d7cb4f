// Hashing a conversation's tokens block by block, and looking each up in the tree.
#include "tools/commands/look/conversation_blocks.h"

#include <algorithm>
#include <optional>

#include "store/tenants.h"

namespace ember {
namespace {

std::optional<uint32_t> find_node(const BlockTree& tree, const BlockHash& hash) {
  const auto& nodes = tree.nodes();
  const auto found =
      std::lower_bound(nodes.begin(), nodes.end(), hash,
                       [](const BlockNode& node, const BlockHash& sought) {
                         return node.hash < sought;
                       });
  if (found == nodes.end() || found->hash != hash) return std::nullopt;
  return static_cast<uint32_t>(found - nodes.begin());
}

// Tokens of a full block of the namespace; 0: it has none.
uint32_t block_tokens(const BlockTree& tree, const NamespaceHash& name_space) {
  for (const BlockNode& node : tree.nodes()) {
    if (!node.tail && tree.name_spaces()[node.name_space] == name_space) return node.tokens;
  }
  return 0;
}

bool begins_with(TokenSpan tokens, TokenSpan beginning) {
  return beginning.size() <= tokens.size() &&
         std::equal(beginning.begin(), beginning.end(), tokens.begin());
}

class ChainWalk {
 public:
  ChainWalk(const Conversation& talk, StoreReader& reader, const BlockTree& tree)
      : reader_(reader), tree_(tree), name_space_(talk.name_space) {}

  // From `root_scope`'s root, going over to `scope` where the chain does.
  Result<std::vector<uint32_t>> run(TokenSpan tokens, const std::string& root_scope,
                                    const std::string& scope) {
    const BlockHasher root(reader_.secret(), name_space_, root_scope);
    const BlockHasher own(reader_.secret(), name_space_, scope);
    const uint32_t span = block_tokens(tree_, name_space_);
    std::vector<uint32_t> found;
    BlockHash parent = root.root();
    bool in_root = true;
    EMBER_TRY(add_first_tails(parent, tokens, found));
    while (span > 0 && tokens.size() >= span) {
      const TokenSpan block = tokens.first(span);
      std::optional<uint32_t> node;
      if (in_root) node = find_node(tree_, root.next(parent, block));
      if (!node) {
        in_root = in_root && root_scope == scope;
        node = find_node(tree_, own.next(parent, block));
      }
      if (!node) break;
      found.push_back(*node);
      parent = tree_.node(*node).hash;
      tokens = tokens.subspan(span);
      for (uint32_t child = tree_.node(*node).first_child; child != kNoNode;
           child = tree_.node(child).next_sibling) {
        EMBER_TRY(add_tail(child, tokens, found));
      }
    }
    return found;
  }

 private:
  Status add_first_tails(const BlockHash& root, TokenSpan tokens, std::vector<uint32_t>& found) {
    for (const uint32_t index : tree_.roots()) {
      if (tree_.node(index).parent_hash == root) EMBER_TRY(add_tail(index, tokens, found));
    }
    return {};
  }

  Status add_tail(uint32_t index, TokenSpan tokens, std::vector<uint32_t>& found) {
    if (!tree_.node(index).tail) return {};
    EMBER_ASSIGN(const std::optional<BlockRecord> record, reader_.record(tree_.node(index).hash));
    if (record && begins_with(tokens, record->tokens)) found.push_back(index);
    return {};
  }

  StoreReader& reader_;
  const BlockTree& tree_;
  const NamespaceHash name_space_;
};

}  // namespace

std::vector<TokenId> tokens_of(const Conversation& conversation) {
  std::vector<TokenId> tokens;
  for (const Turn& turn : conversation.turns) {
    tokens.insert(tokens.end(), turn.prompt.begin(), turn.prompt.end());
    tokens.insert(tokens.end(), turn.answer.begin(), turn.answer.end());
  }
  return tokens;
}

Result<std::vector<uint32_t>> blocks_of(const Conversation& conversation, StoreReader& reader,
                                        const BlockTree& tree) {
  const std::vector<TokenId> tokens = tokens_of(conversation);
  ChainWalk walk(conversation, reader, tree);
  EMBER_ASSIGN(std::vector<uint32_t> found,
               walk.run(tokens, conversation.scope, conversation.scope));
  if (conversation.scope == kSharedScopeName) return found;
  // A tenant's chain may begin in what all share; then both hold what was said.
  EMBER_ASSIGN(const std::vector<uint32_t> shared,
               walk.run(tokens, std::string(kSharedScopeName), conversation.scope));
  found.insert(found.end(), shared.begin(), shared.end());
  return found;
}

}  // namespace ember
