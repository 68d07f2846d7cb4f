// Import: two passes over the same bytes, the first of which only looks.
#include "store/transfer/import.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/tenants.h"

namespace ember {
namespace {

// Of namespaces and scopes; a file that goes to and fro between more costs time, not memory.
constexpr size_t kMostHashers = 1024;

bool same_question(const Turn& a, const Turn& b) {
  return a.user == b.user && a.prompt == b.prompt && a.seed == b.seed &&
         a.temperature == b.temperature && a.max_tokens == b.max_tokens;
}

bool same_turn(const Turn& a, const Turn& b) {
  return same_question(a, b) && a.answer == b.answer && a.state == b.state &&
         a.finish_reason == b.finish_reason;
}

// Whether `later` is that turn after more of its answer was drawn.
bool goes_on(const Turn& earlier, const Turn& later) {
  return earlier.state == TurnState::kAsked && same_question(earlier, later) &&
         earlier.answer.size() <= later.answer.size() &&
         std::equal(earlier.answer.begin(), earlier.answer.end(), later.answer.begin());
}

// From which turn on `later` has more than `earlier`, all of which it has; nothing if it does not.
std::optional<uint32_t> continues(const std::vector<Turn>& earlier,
                                  const std::vector<Turn>& later) {
  size_t common = 0;
  while (common < earlier.size() && common < later.size() &&
         same_turn(earlier[common], later[common])) {
    ++common;
  }
  const bool all = common == earlier.size();
  const bool last = common + 1 == earlier.size() && common < later.size() &&
                    goes_on(earlier[common], later[common]);
  if (!all && !last) return std::nullopt;
  return static_cast<uint32_t>(common);
}

// Of two records of the same block; unequal only where that can be told.
bool same_latents(const BlockRecord& a, const BlockRecord& b) {
  if (a.groups.size() != b.groups.size()) return true;
  for (size_t i = 0; i < a.groups.size(); ++i) {
    if (a.groups[i].layers != b.groups[i].layers || b.groups[i].stored_bytes == 0) return true;
    if (a.groups[i].checksum != b.groups[i].checksum) return false;
  }
  return true;
}

}  // namespace

Result<ImportReport> Importer::prove(ByteSource source) {
  proven_.reset();
  return pass(std::move(source), nullptr);
}

Result<ImportReport> Importer::enter(ByteSource source, RecordIntake& intake) {
  EMBER_CHECK(proven_.has_value(), "nothing is entered that was not proven");
  EMBER_ASSIGN(ImportReport report, pass(std::move(source), &intake));
  EMBER_TRY(intake.finish());
  const auto take_over = [](IntakeCounts& counts, const IntakeCounts& blocks) {
    const uint64_t conversations = counts.conversations;
    counts = blocks;
    counts.conversations = conversations;
  };
  take_over(report.fresh, intake.taken().fresh);
  take_over(report.known, intake.taken().known);
  return report;
}

Result<ImportReport> Importer::pass(ByteSource source, RecordIntake* intake) {
  EMBER_ASSIGN(const std::unique_ptr<TransferReader> reader,
               TransferReader::open(std::move(source)));
  manifest_ = reader->manifest();
  placed_.clear();
  hashers_.clear();
  done_ = 0;
  if (intake != nullptr) {
    secret_ = intake->secret();
  } else if (known_ != nullptr) {
    secret_ = known_->secret();
  }
  EMBER_TRY(map_scopes(manifest_));
  ImportReport report;
  report.name_spaces = manifest_.name_spaces.size();
  if (intake != nullptr) EMBER_TRY(write_namespaces({}, {}, *intake, report));
  while (true) {
    EMBER_ASSIGN(TransferItem item, reader->next());
    const uint64_t planned = manifest_.planned.blocks + manifest_.planned.tails;
    if (rules_.progress && !rules_.progress(done_++, planned)) {
      return Error{ErrorCode::kCancelled, "stopped"};
    }
    switch (item.kind) {
      case TransferKind::kTokenizer:
        EMBER_TRY(take_tokenizer(item, intake, report));
        break;
      case TransferKind::kBlock:
        EMBER_TRY(take_block(item, intake, report));
        break;
      case TransferKind::kConversation:
        EMBER_TRY(take_conversation(item, intake, report));
        break;
      case TransferKind::kEnd:
        if (proven_ && *proven_ != item.end.digest) {
          return Error{ErrorCode::kCorruption, "the file has changed since it was proven"};
        }
        proven_ = item.end.digest;
        report.left_out = item.end.left_out;
        return report;
    }
  }
}

Status Importer::map_scopes(const TransferManifest& manifest) {
  scopes_.clear();
  scope_names_.clear();
  for (const std::string& scope : manifest.scopes) {
    const auto named = rules_.scopes.find(scope);
    if (named == rules_.scopes.end() && scope != kSharedScopeName) {
      return {ErrorCode::kInvalidArgument, "it has blocks of the tenant " + scope +
                                               ": --scope " + scope +
                                               "=NAME says whose they become"};
    }
    const std::string& here = named == rules_.scopes.end() ? scope : named->second;
    const auto known = std::find(scope_names_.begin(), scope_names_.end(), here);
    scopes_[scope] = static_cast<uint32_t>(known - scope_names_.begin());
    if (known == scope_names_.end()) scope_names_.push_back(here);
  }
  return {};
}

Status Importer::take_tokenizer(const TransferItem& item, RecordIntake* intake,
                                ImportReport& report) {
  if (intake != nullptr) {
    return write_namespaces(item.tokenizer.digest, item.files, *intake, report);
  }
  if (!rules_.check_tokenizer) return {};
  return rules_.check_tokenizer(item.tokenizer.digest, item.files);
}

// Those with this tokenizer (zeros: without one). What cannot be written costs texts, not blocks.
Status Importer::write_namespaces(const BlockHash& tokenizer, const NamespaceEntry::Files& files,
                                  RecordIntake& intake, ImportReport& report) {
  for (const TransferNamespace& one : manifest_.name_spaces) {
    if (one.tokenizer != tokenizer || !one.layout) continue;
    const NamespaceEntry entry{
        .fields = one.fields,
        .model = one.model,
        .tokenizer_digest = tokenizer,
        .tokenizer_files = [&files]() -> Result<NamespaceEntry::Files> { return files; }};
    const Status written = intake.put_namespace(one.name, entry);
    if (!written.ok()) report.remarks.push_back(written.error().message);
  }
  return {};
}

// In this store a block has another name, and perhaps another scope.
Status Importer::name_block(const TransferItem& item, BlockRecord& record) {
  const uint32_t scope = scopes_.at(record.scope);
  record.scope = scope_names_[scope];
  const std::string key = std::string(record.name_space.view()) + record.scope;
  auto hasher = hashers_.find(key);
  if (hasher == hashers_.end()) {
    if (hashers_.size() == kMostHashers) hashers_.clear();
    hasher =
        hashers_.emplace(key, BlockHasher(secret_, record.name_space, record.scope)).first;
  }
  record.parent = hasher->second.root();
  if (item.parent != 0) {
    const Placed& above = placed_[item.parent - 1];
    if (above.scope != scope && scope_names_[above.scope] != kSharedScopeName) {
      return {ErrorCode::kInvalidArgument,
              "a chain would go from the tenant " + scope_names_[above.scope] + " to " +
                  record.scope + ": it can only go from shared to one tenant"};
    }
    record.parent = above.name;
  }
  record.hash = hasher->second.next(record.parent, record.tokens);
  placed_.push_back({record.hash, scope});
  return {};
}

Status Importer::take_block(TransferItem& item, RecordIntake* intake, ImportReport& report) {
  BlockRecord& record = item.record;
  EMBER_TRY(name_block(item, record));
  if (intake != nullptr) return intake->put_block(std::move(record), std::move(item.payloads));
  if (known_ == nullptr) {
    report.fresh.add(record);
    return {};
  }
  EMBER_ASSIGN(const std::optional<BlockRecord> here, known_->record(record.hash));
  const bool hole = here && !here->tail && here->epoch == 0 && here->stored_bytes() > 0;
  if (!here || hole) {
    report.fresh.add(record);
    return {};
  }
  if (here->tokens != record.tokens) {
    return {ErrorCode::kCorruption,
            "block " + record.hash.hex() + " is there with other tokens: the store is damaged"};
  }
  report.known.add(record);
  if (!same_latents(record, *here)) ++report.differing;
  return {};
}

Result<Importer::Continuation> Importer::compare(const Conversation& conversation) {
  Continuation found;
  if (known_ == nullptr) return found;
  const Result<Conversation> here = known_->conversations().load(conversation.id);
  if (!here.ok() && here.error().code == ErrorCode::kInvalidArgument) return found;
  if (!here.ok()) return here.error();
  const bool same_talk = here->name_space == conversation.name_space &&
                         here->scope == conversation.scope &&
                         here->system == conversation.system &&
                         here->template_name == conversation.template_name;
  const std::optional<uint32_t> forward = continues(here->turns, conversation.turns);
  const std::optional<uint32_t> back = continues(conversation.turns, here->turns);
  if (same_talk && forward && back) {
    found.known = true;
  } else if (same_talk && forward) {
    found.first_turn = *forward;
  } else if (same_talk && back) {
    found.newer_here = true;
  } else {
    return Error{ErrorCode::kInvalidArgument,
                 "conversation " + conversation.id + " is there already, and went on differently"};
  }
  return found;
}

Status Importer::take_conversation(TransferItem& item, RecordIntake* intake,
                                   ImportReport& report) {
  Conversation& conversation = item.conversation;
  conversation.scope = scope_names_[scopes_.at(conversation.scope)];
  EMBER_ASSIGN(const Continuation found, compare(conversation));
  if (found.known) {
    ++report.known.conversations;
  } else if (found.newer_here) {
    ++report.newer_here;
  } else {
    ++report.fresh.conversations;
    if (intake != nullptr) EMBER_TRY(intake->put_conversation(conversation, found.first_turn));
  }
  return {};
}

}  // namespace ember
