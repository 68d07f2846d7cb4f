// Checking, asking, and handing the change to the store's editor.
#include "tools/commands/conversation_edits.h"

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
#include "store/edit/live_editor.h"
#include "store/ram_plan.h"
#include "store/store_editor.h"
#include "tools/commands/block_filter.h"
#include "tools/commands/bounded_line.h"
#include "tools/commands/conversation_form.h"
#include "tools/commands/conversations.h"
#include "tools/commands/engine_flags.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/prompt_match.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostAnswerBytes = 16;  // to a question

void print_line(const Json& json, std::ostream& out) {
  out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

// In the process that holds the store by its cache, else with the store's lock.
Result<std::shared_ptr<StoreEditor>> open_editor(const StoreChoice& store,
                                                 CommandContext& context) {
  const Result<LiveCache> live = context.open_live(store);
  if (live.ok()) {
    EMBER_ASSIGN(std::unique_ptr<StoreEditor> editor,
                 open_live_editor(*live->cache,
                                  {.call = live->call,
                                   .wait_for = live->wait_for,
                                   .cancelled = [&context] { return context.io.stopped(); }}));
    return std::shared_ptr<StoreEditor>(std::move(editor));
  }
  const std::string path = store.resolved();
  EMBER_ASSIGN(const uint64_t usual, default_disk_bytes(path));
  const uint64_t there = directory_bytes(path);
  EMBER_ASSIGN(std::unique_ptr<StoreEditor> editor,
               open_resting_editor(path, store.encryption, std::max(usual, there + there / 2)));
  return std::shared_ptr<StoreEditor>(std::move(editor));
}

struct Leaving {
  Conversation conversation;
  uint64_t blocks = 0;  // what stays of it in the cache
  uint64_t tails = 0;
  uint64_t stored_bytes = 0;
};

// Blocks and tails whose tokens are the conversation's.
Status count_what_stays(Leaving& leaving, StoreReader& reader, const BlockTree& tree) {
  const Conversation& talk = leaving.conversation;
  std::vector<TokenId> tokens;
  for (const Turn& turn : talk.turns) {
    tokens.insert(tokens.end(), turn.prompt.begin(), turn.prompt.end());
    tokens.insert(tokens.end(), turn.answer.begin(), turn.answer.end());
  }
  tokens.push_back(0);  // the last one is never matched
  EMBER_ASSIGN(const PromptMatch match,
               match_prompt(reader, tree, tokens,
                            {.name_space = talk.name_space, .scope = talk.scope, .build = {}}));
  uint64_t end = 0;
  for (const uint32_t index : match.nodes) {
    const BlockNode& node = tree.node(index);
    end += node.tokens;
    if (end > match.tokens) break;  // it goes on otherwise
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
  return "conversation " + one.conversation.id + ", " + grouped(one.conversation.turns.size()) +
         " turns of " + grouped(token_count(one.conversation)) + " tokens";
}

void report(const Leaving& one, const RemoveConversationsOptions& options, CommandIo& io) {
  if (options.json) {
    return print_line({{"conversation", one.conversation.id},
                       {"dry_run", options.dry_run},
                       {"turns", one.conversation.turns.size()},
                       {"tokens", token_count(one.conversation)},
                       {"blocks_that_stay", one.blocks},
                       {"tails_that_stay", one.tails},
                       {"stored_bytes", one.stored_bytes}},
                      io.out);
  }
  io.out << (options.dry_run ? "would remove " : "removed ") << described(one) << "; "
         << grouped(one.blocks) << " blocks and " << grouped(one.tails) << " tails of it, "
         << human_bytes(one.stored_bytes)
         << ", stay as cache until they are evicted (emberkv rm removes them too)" << std::endl;
}

Result<std::vector<ConversationClaim>> claim_all(const std::vector<Leaving>& leaving,
                                                 const ClaimConversation& claim) {
  std::vector<ConversationClaim> claims;
  for (const Leaving& one : leaving) {
    if (!claim) break;
    claims.push_back(claim(one.conversation.id));
    if (claims.back() != nullptr) continue;
    return Error{ErrorCode::kBusy,
                 "conversation " + one.conversation.id + " is open in a terminal"};
  }
  return claims;
}

bool agreed(const std::vector<Leaving>& leaving, CommandIo& io) {
  for (const Leaving& one : leaving) io.out << described(one) << std::endl;
  io.err << "remove "
         << (leaving.size() == 1 ? "this conversation"
                                 : grouped(leaving.size()) + " conversations")
         << "? [y/N] " << std::flush;
  std::string answer;
  const bool said = read_bounded_line(io.in, answer, kMostAnswerBytes) == LineEnd::kLine;
  if (said && (answer == "y" || answer == "Y" || answer == "yes")) return true;
  io.err << "nothing was changed" << std::endl;
  return false;
}

// The turns before `turn`, which is counted from 1. Errors: kInvalidArgument.
Result<Conversation> branch_of(Conversation talk, uint64_t turn) {
  const std::string name = "conversation " + talk.id;
  if (turn == 0 || turn > talk.turns.size() + 1) {
    return Error{ErrorCode::kInvalidArgument,
                 name + " has " + std::to_string(talk.turns.size()) + " turns; found --turn " +
                     std::to_string(turn) + ", expected 1 to " +
                     std::to_string(talk.turns.size() + 1)};
  }
  talk.turns.resize(turn - 1);
  if (!talk.turns.empty() && talk.turns.back().state != TurnState::kFinished) {
    return Error{ErrorCode::kInvalidArgument,
                 name + ": the answer of turn " + std::to_string(turn - 1) +
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
  if (!options.yes && !options.dry_run && !options.interactive) {
    print_error(io.err,
                "standard input is no terminal that could be asked: give --yes, or --dry-run to "
                "see what would be done");
    return kExitUsage;
  }
  std::vector<Leaving> leaving;
  {
    EMBER_ASSIGN(const std::shared_ptr<StoreReader> reader, context.open_reader(options.store));
    EMBER_ASSIGN(leaving, find_leaving(options.ids, *reader, io));
  }
  EMBER_ASSIGN(const std::vector<ConversationClaim> claims, claim_all(leaving, options.claim));
  if (!options.dry_run && !options.yes && !agreed(leaving, io)) return kExitFailed;
  if (!options.dry_run) {
    EMBER_ASSIGN(const std::shared_ptr<StoreEditor> editor, open_editor(options.store, context));
    for (const Leaving& one : leaving) {
      EMBER_TRY(editor->remove_conversation(one.conversation.id));
      report(one, options, io);
    }
    return kExitOk;
  }
  for (const Leaving& one : leaving) report(one, options, io);
  return kExitOk;
}

Result<int> run_branch_conversation(const BranchConversationOptions& options,
                                    CommandContext& context) {
  CommandIo& io = context.io;
  EMBER_ASSIGN(const std::optional<std::string> message, read_message(options, context));
  EMBER_ASSIGN(const std::shared_ptr<StoreEditor> editor, open_editor(options.store, context));
  EMBER_ASSIGN(Conversation talk,
               load_conversation(editor->reader().conversations(), options.id));
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
  io.out << "conversation " << branch.id << ": " << grouped(taken) << " turns of " << old_id << ", "
         << grouped(common) << " tokens; chat --resume " << branch.id
         << (message ? " asks the message" : " goes on with it") << std::endl;
  return kExitOk;
}

}  // namespace ember
