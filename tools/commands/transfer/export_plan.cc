// Choosing by flags, and proving what each namespace is.
#include "tools/commands/transfer/export_plan.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "store/tenants.h"
#include "tools/commands/look/conversation_blocks.h"
#include "tools/commands/look/conversations.h"
#include "tools/commands/version.h"

namespace ember {
namespace {

// Of the layers and rows of a record, with the tokens of a full block.
KvLayout layout_of(const BlockRecord& record, uint32_t block_tokens) {
  uint32_t layers = 0;
  for (const GroupEntry& group : record.groups) layers += group.layers;
  return KvLayout(layers, block_tokens, record.streams[0]);
}

// The layout that belongs to the name. A tail does not tell how long a full block is: the name
// itself does.
std::optional<KvLayout> proven_layout(const BlockRecord& record, const NamespaceNote& note) {
  if (record.streams.size() != 1 || record.groups.empty()) return std::nullopt;
  const auto tokens = static_cast<uint32_t>(record.tokens.size());
  const uint32_t most = record.tail ? kMaxBlockTokens : tokens;
  for (uint32_t block_tokens = tokens; block_tokens <= most; ++block_tokens) {
    const KvLayout layout = layout_of(record, block_tokens);
    if (namespace_hash(note.fields, layout) == record.name_space) return layout;
  }
  return std::nullopt;
}

class Planner {
 public:
  Planner(const ExportOptions& options, StoreReader& reader, const BlockTree& tree)
      : options_(options), reader_(reader), tree_(tree), filter_(options.filter) {
    if (filter_.scope.empty()) filter_.scope = kSharedScopeName;
  }

  Result<ExportPlan> run() {
    plan_.chosen.resize(tree_.nodes().size());
    if (options_.conversation.empty()) {
      EMBER_TRY(choose_blocks());
      EMBER_TRY(choose_conversations());
    } else {
      EMBER_TRY(choose_conversation());
    }
    EMBER_TRY(describe_namespaces());
    describe_counts();
    return std::move(plan_);
  }

 private:
  void choose(uint32_t index) {
    for (uint32_t at = index; at != kNoNode && !plan_.chosen[at]; at = tree_.node(at).parent) {
      plan_.chosen[at] = true;
    }
  }

  Status choose_blocks() {
    BlockFilter given = filter_;
    if (options_.filter.scope.empty()) given.scope.clear();
    EMBER_TRY(check_known(given, tree_));
    EMBER_ASSIGN(const uint32_t start, start_of(tree_, filter_.prefix));
    const int64_t now_us = system_clock().unix_us();
    std::vector<bool> below_orphan(tree_.nodes().size());
    tree_.descend(start, [&](uint32_t index, uint32_t) {
      const BlockNode& node = tree_.node(index);
      const bool above = node.parent != kNoNode && below_orphan[node.parent];
      below_orphan[index] = node.orphan || above;
      if (!passes(filter_, tree_, node, now_us)) return true;
      if (below_orphan[index]) {
        ++plan_.unreachable;
      } else {
        choose(index);
      }
      return true;
    });
    return {};
  }

  // Whether the flags say which blocks: then the talks stay where they are.
  bool names_blocks() const {
    BlockFilter filter = options_.filter;
    filter.scope.clear();
    filter.name_space.clear();
    return filter != BlockFilter{};
  }

  Status choose_conversations() {
    if (names_blocks()) return {};
    EMBER_ASSIGN(std::vector<Conversation> heads, reader_.conversations().list());
    for (uint64_t i = reader_.conversations().unreadable_heads(); i > 0; --i) {
      plan_.damage.push_back("a conversation cannot be read");
      ++plan_.left_out;
    }
    for (Conversation& head : heads) {
      const bool named = head.scope == filter_.scope &&
                         head.name_space.hex().rfind(filter_.name_space, 0) == 0;
      if (named) plan_.conversations.push_back(std::move(head));
    }
    return {};
  }

  // Its record, the full blocks that hold nothing but its tokens, and its tails.
  Status choose_conversation() {
    if (names_blocks() || !options_.filter.name_space.empty()) {
      return {ErrorCode::kInvalidArgument,
              "--conversation names what is exported: expected no other choice beside it"};
    }
    EMBER_ASSIGN(Conversation talk,
                 load_conversation(reader_.conversations(), options_.conversation));
    if (talk.scope != filter_.scope) {
      return {ErrorCode::kInvalidArgument, "conversation " + talk.id + " is of the scope " +
                                               talk.scope + ": name it with --scope"};
    }
    EMBER_ASSIGN(const std::vector<uint32_t> own, blocks_of(talk, reader_, tree_));
    for (const uint32_t index : own) choose(index);
    plan_.conversations.push_back(std::move(talk));
    return {};
  }

  // Those of the chosen blocks, a block of each, and those of talks alone.
  Status describe_namespaces() {
    std::map<NamespaceHash, std::optional<uint32_t>> names;
    for (uint32_t i = 0; i < plan_.chosen.size(); ++i) {
      if (!plan_.chosen[i]) continue;
      std::optional<uint32_t>& one = names[tree_.name_spaces()[tree_.node(i).name_space]];
      if (!one || (tree_.node(*one).tail && !tree_.node(i).tail)) one = i;
    }
    for (const Conversation& talk : plan_.conversations) names.try_emplace(talk.name_space);
    if (names.size() > kMostTransferNamespaces) {
      return {ErrorCode::kUnsupported, "it would hold " + std::to_string(names.size()) +
                                           " namespaces, at most " +
                                           std::to_string(kMostTransferNamespaces) +
                                           " are possible: name them with --namespace"};
    }
    std::set<NamespaceHash> refused;
    for (const auto& [name, block] : names) {
      EMBER_ASSIGN(const bool known, describe_namespace(name, block));
      if (!known) refused.insert(name);
    }
    if (!refused.empty()) leave_out(refused);
    return {};
  }

  // False: what it is cannot be proven, so nobody could import it.
  Result<bool> describe_namespace(const NamespaceHash& name, std::optional<uint32_t> block) {
    Result<NamespaceNote> note = reader_.name_space(name);
    if (!note.ok()) {
      plan_.damage.push_back("namespace " + name.hex() + ": " + note.error().message);
      return false;
    }
    TransferNamespace one;
    one.name = name;
    one.model = note->model;
    one.fields = note->fields;
    if (block) {
      EMBER_ASSIGN(const std::optional<BlockRecord> record,
                   reader_.record(tree_.node(*block).hash));
      if (record) one.layout = proven_layout(*record, *note);
      if (!one.layout) {
        plan_.damage.push_back("namespace " + name.hex() +
                               ": the store does not know what it is");
        return false;
      }
    }
    take_tokenizer(note->tokenizer_folder, one);
    plan_.manifest.name_spaces.push_back(std::move(one));
    return true;
  }

  // One that cannot be read costs the text, and nothing else.
  void take_tokenizer(const std::string& folder, TransferNamespace& one) {
    namespace fs = std::filesystem;
    const std::optional<std::string> digest = from_hex(fs::path(folder).filename().string());
    TransferTokenizer tokenizer;
    if (!digest || digest->size() != tokenizer.digest.bytes.size()) return;
    std::copy(digest->begin(), digest->end(), tokenizer.digest.bytes.begin());
    for (const char* name : {"tokenizer.json.gz", "tokenizer_config.json"}) {
      std::error_code error;
      const uint64_t bytes = fs::file_size(fs::path(folder) / name, error);
      if (!error && bytes <= kMostTokenizerFileBytes) tokenizer.files.push_back({name, bytes});
    }
    if (tokenizer.files.empty() || tokenizer.files[0].name != "tokenizer.json.gz") return;
    one.tokenizer = tokenizer.digest;
    for (const TransferTokenizer& known : plan_.manifest.tokenizers) {
      if (known.digest == tokenizer.digest) return;
    }
    plan_.manifest.tokenizers.push_back(std::move(tokenizer));
    plan_.tokenizer_folders.push_back(folder);
  }

  void leave_out(const std::set<NamespaceHash>& names) {
    for (uint32_t i = 0; i < plan_.chosen.size(); ++i) {
      if (!plan_.chosen[i]) continue;
      if (!names.contains(tree_.name_spaces()[tree_.node(i).name_space])) continue;
      plan_.chosen[i] = false;
      ++plan_.left_out;
    }
    plan_.left_out += std::erase_if(plan_.conversations, [&names](const Conversation& talk) {
      return names.contains(talk.name_space);
    });
  }

  void describe_counts() {
    TransferManifest& manifest = plan_.manifest;
    manifest.program = kProgramVersion;
    manifest.made_unix_us = system_clock().unix_us();
    manifest.planned.conversations = plan_.conversations.size();
    std::set<std::string> scopes;
    for (uint32_t i = 0; i < plan_.chosen.size(); ++i) {
      if (!plan_.chosen[i]) continue;
      ++(tree_.node(i).tail ? manifest.planned.tails : manifest.planned.blocks);
      scopes.insert(tree_.scopes()[tree_.node(i).scope]);
    }
    for (const Conversation& talk : plan_.conversations) scopes.insert(talk.scope);
    manifest.scopes.assign(scopes.begin(), scopes.end());
  }

  const ExportOptions& options_;
  StoreReader& reader_;
  const BlockTree& tree_;
  BlockFilter filter_;
  ExportPlan plan_;
};

}  // namespace

Result<ExportPlan> plan_export(const ExportOptions& options, StoreReader& reader,
                               const BlockTree& tree) {
  return Planner(options, reader, tree).run();
}

}  // namespace ember
