// Checking, asking, and handing the change to the store's editor.
#include "tools/commands/change/conversation_edits.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "engine/runtime/chat_session.h"
#include "engine/text/text_file.h"
#include "store/store_editor.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/look/block_filter.h"
#include "tools/commands/look/conversation_blocks.h"
#include "tools/commands/look/conversation_form.h"
#include "tools/commands/look/conversations.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

void print_line(const Json& json, std::ostream& out) {
  out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

struct Leaving {
  Conversation conversation;
  uint64_t blocks = 0;  // what stays of it in the cache
  uint64_t tails = 0;
  uint64_t stored_bytes = 0;
};

Status count_what_stays(Leaving& leaving, StoreReader& reader, const BlockTree& tree) {
  EMBER_ASSIGN(const std::vector<uint32_t> own, blocks_of(leaving.conversation, reader, tree));
  for (const uint32_t index : own) {
    const BlockNode& node = tree.node(index);
    ++(node.tail ? leaving.tails : leaving.blocks);
    leaving.stored_bytes += node.stored_bytes;
  }
  return {};
}

Result<std::vector<Leaving>> find_leaving(const std::vector<std::string>& ids, StoreReader& reader,
                                          CommandIo& io) {
  std::vector<Leaving> leaving;
  std::set<std::string> seen;
  for (const std::string& given : ids) {
    EMBER_ASSIGN(const std::string id, conversation_id(reader.conversations(), given));
    if (!seen.insert(id).second) continue;
    Leaving one;
    EMBER_ASSIGN(one.conversation, reader.conversations().load(id));
    leaving.push_back(std::move(one));
  }
  EMBER_ASSIGN(const BlockTree tree, read_tree(reader, io));
  for (Leaving& one : leaving) EMBER_TRY(count_what_stays(one, reader, tree));
  return leaving;
}

std::string described(const Leaving& one) {
  return "conversation " + one.conversation.id + ", " +
         counted(one.conversation.turns.size(), "turn") + " of " +
         counted(token_count(one.conversation), "token");
}

void report(const Leaving& one, const RemoveConversationsOptions& options, CommandIo& io) {
  if (options.json) {
    return print_line({{"conversation", one.conversation.id},
                       {"dry_run", options.consent.dry_run},
                       {"turns", one.conversation.turns.size()},
                       {"tokens", token_count(one.conversation)},
                       {"blocks_that_stay", one.blocks},
                       {"tails_that_stay", one.tails},
                       {"stored_bytes", one.stored_bytes}},
                      io.out);
  }
  io.out << (options.consent.dry_run ? "would remove " : "removed ") << described(one) << "; "
         << counted(one.blocks, "block") << " and " << counted(one.tails, "tail") << " of it, "
         << human_bytes(one.stored_bytes)
         << ", stay as cache until they are evicted (emberkv rm removes them too)" << std::endl;
}

Result<std::vector<ConversationClaim>> claim_all(const std::vector<Leaving>& leaving,
                                                 const CommandContext& context) {
  std::vector<ConversationClaim> claims;
  for (const Leaving& one : leaving) {
    EMBER_ASSIGN(ConversationClaim claim, context.claim(one.conversation.id));
    claims.push_back(std::move(claim));
  }
  return claims;
}

bool agreed(const std::vector<Leaving>& leaving, const Consent& consent, CommandIo& io) {
  if (!consent.yes) {
    for (const Leaving& one : leaving) io.out << described(one) << std::endl;
  }
  return confirm(consent,
                 "remove " + (leaving.size() == 1 ? "this conversation"
                                                  : counted(leaving.size(), "conversation")),
                 io);
}

// The turns before `turn`, which is counted from 1. Errors: kInvalidArgument.
Result<Conversation> branch_of(Conversation talk, uint64_t turn) {
  const std::string name = "conversation " + talk.id;
  if (turn == 0 || turn > talk.turns.size() + 1) {
    return Error{ErrorCode::kInvalidArgument, name + " has " + std::to_string(talk.turns.size()) +
                                                  " turns; found --turn " + std::to_string(turn) +
                                                  ", expected 1 to " +
                                                  std::to_string(talk.turns.size() + 1)};
  }
  talk.turns.resize(turn - 1);
  if (!talk.turns.empty() && talk.turns.back().state != TurnState::kFinished) {
    return Error{ErrorCode::kInvalidArgument, name + ": the answer of turn " +
                                                  std::to_string(turn - 1) +
                                                  " is not finished; chat --resume finishes it"};
  }
  return talk;
}

// In the holder a name such as /dev/stdin would be the holder's own, and a pipe could hold it up.
Result<std::optional<std::string>> read_message(const BranchConversationOptions& options,
                                                const CommandContext& context) {
  if (!options.message_file) return options.message;
  const std::string& file = *options.message_file;
  std::error_code error;
  if (!context.folder.empty() && !std::filesystem::is_regular_file(file, error)) {
    return Error{ErrorCode::kInvalidArgument, file + ": is no file"};
  }
  EMBER_ASSIGN(std::string text, read_text_file(file));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return std::optional<std::string>(std::move(text));
}

}  // namespace

Result<int> run_remove_conversations(const RemoveConversationsOptions& options,
                                     CommandContext& context) {
  CommandIo& io = context.io;
  if (!can_consent(options.consent, io)) return kExitUsage;
  std::vector<Leaving> leaving;
  {
    EMBER_ASSIGN(const std::shared_ptr<StoreReader> reader, context.open_reader(options.store));
    EMBER_ASSIGN(leaving, find_leaving(options.ids, *reader, io));
  }
  EMBER_ASSIGN(const std::vector<ConversationClaim> claims, claim_all(leaving, context));
  if (options.consent.dry_run) {
    for (const Leaving& one : leaving) report(one, options, io);
    return kExitOk;
  }
  if (!agreed(leaving, options.consent, io)) return kExitFailed;
  EMBER_ASSIGN(const std::shared_ptr<StoreEditor> editor, context.open_editor(options.store, 0));
  for (const Leaving& one : leaving) {
    EMBER_TRY(editor->remove_conversation(one.conversation.id));
    report(one, options, io);
  }
  return kExitOk;
}

Result<int> run_branch_conversation(const BranchConversationOptions& options,
                                    CommandContext& context) {
  CommandIo& io = context.io;
  EMBER_ASSIGN(const std::optional<std::string> message, read_message(options, context));
  EMBER_ASSIGN(const std::shared_ptr<StoreEditor> editor, context.open_editor(options.store, 0));
  EMBER_ASSIGN(Conversation talk, load_conversation(editor->reader().conversations(), options.id));
  const std::string old_id = talk.id;
  const Turn settings = talk.turns.empty()
                            ? Turn{}
                            : talk.turns[std::min<size_t>(options.turn > 0 ? options.turn - 1 : 0,
                                                          talk.turns.size() - 1)];
  EMBER_ASSIGN(Conversation branch, branch_of(std::move(talk), options.turn));
  branch.id = new_conversation_id();
  branch.created_unix_us = system_clock().unix_us();
  branch.updated_unix_us = branch.created_unix_us;
  const size_t taken = branch.turns.size();
  const uint64_t common = token_count(branch);
  if (message) {
    Turn question;  // its tokens are made by the chat that goes on, with its own template
    question.user = *message;
    question.seed = settings.seed;
    question.temperature = settings.temperature;
    question.max_tokens = settings.max_tokens > 0 ? settings.max_tokens : TurnOptions{}.max_tokens;
    branch.turns.push_back(std::move(question));
  }
  EMBER_TRY(editor->add_conversation(branch));
  if (options.json) {
    print_line({{"conversation", branch.id},
                {"branched_from", old_id},
                {"turns", taken},
                {"common_tokens", common},
                {"asks", message.has_value()}},
               io.out);
    return kExitOk;
  }
  io.out << "conversation " << branch.id << ": " << counted(taken, "turn") << " of " << old_id
         << ", " << counted(common, "token") << "; chat --resume " << branch.id
         << (message ? " asks the message" : " goes on with it") << std::endl;
  return kExitOk;
}

}  // namespace ember
