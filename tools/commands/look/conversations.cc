// Telling the talks that a store keeps, and writing one down.
#include "tools/commands/look/conversations.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <vector>

#include "base/clock.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/look/conversation_form.h"
#include "tools/commands/look/prefix_text.h"
#include "tools/commands/output_file.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

void print_line(const Json& json, std::ostream& out) {
  out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

Json head_json(const Conversation& conversation) {
  return {{"conversation", conversation.id},
          {"scope", conversation.scope},
          {"turns", conversation.turns.size()},
          {"template", conversation.template_name},
          {"namespace", conversation.name_space.hex()},
          {"created_unix_us", conversation.created_unix_us},
          {"updated_unix_us", conversation.updated_unix_us}};
}

}  // namespace

Result<Conversation> load_conversation(Conversations& conversations, const std::string& id) {
  if (id != "last") return conversations.load(id);
  EMBER_ASSIGN(const std::vector<Conversation> heads, conversations.list());
  if (!heads.empty()) return conversations.load(heads.front().id);
  return Error{ErrorCode::kInvalidArgument, "the store keeps no conversation"};
}

Result<int> run_list_conversations(const ListConversationsOptions& options,
                                   CommandContext& context) {
  CommandIo& io = context.io;
  EMBER_ASSIGN(const std::shared_ptr<StoreReader> reader, context.open_reader(options.store));
  EMBER_ASSIGN(const std::vector<Conversation> heads, reader->conversations().list());
  const size_t shown = options.limit == 0 ? heads.size() : std::min(heads.size(), options.limit);
  const int64_t now_us = system_clock().unix_us();
  uint64_t unreadable = 0;
  TextTable table({{"conversation"},
                   {"turns", true},
                   {"tokens", true},
                   {"age", true},
                   {"template"},
                   {"first question"}});
  for (size_t i = 0; i < shown && !io.stopped(); ++i) {
    const Result<Conversation> loaded = reader->conversations().load(heads[i].id);
    if (!loaded.ok()) {
      ++unreadable;
      continue;
    }
    const Conversation& whole = *loaded;
    if (options.json) {
      Json json = head_json(whole);
      json["tokens"] = token_count(whole);
      print_line(json, io.out);
      continue;
    }
    const std::string first = whole.turns.empty() ? "" : whole.turns.front().user;
    table.add({whole.id, grouped(whole.turns.size()), grouped(token_count(whole)),
               age_text(whole.updated_unix_us, now_us), one_line(whole.template_name, 24),
               one_line(first, 200)});
  }
  if (!options.json) {
    io.out << table.text(io.width, io.colour);
    if (shown < heads.size()) {
      io.out << "and " << grouped(heads.size() - shown) << " more (--limit 0 shows all)\n";
    }
    const uint64_t damaged = reader->conversations().unreadable_heads() + unreadable;
    if (damaged > 0) io.out << counted(damaged, "conversation") << " cannot be read\n";
  }
  io.out << std::flush;
  return kExitOk;
}

Result<int> run_show_conversation(const ShowConversationOptions& options, CommandContext& context) {
  CommandIo& io = context.io;
  EMBER_ASSIGN(const std::shared_ptr<StoreReader> reader, context.open_reader(options.store));
  EMBER_ASSIGN(const Conversation talk, load_conversation(reader->conversations(), options.id));
  PrefixText text(*reader);
  if (!options.json) {
    print_conversation(talk, text, io.out);
    io.out << std::flush;
    return kExitOk;
  }
  Json json = head_json(talk);
  json["system"] = talk.system;
  json["turns"] = Json::array();
  for (const Turn& turn : talk.turns) {
    Json one = {{"user", turn.user},
                {"state", turn_state_name(turn.state)},
                {"finish_reason", turn.finish_reason},
                {"prompt_tokens", turn.prompt.size()},
                {"answer_tokens", turn.answer.size()},
                {"seed", turn.seed},
                {"temperature", turn.temperature},
                {"max_tokens", turn.max_tokens}};
    const std::optional<std::string> answer = text.of(talk.name_space, turn.answer);
    if (answer) one["answer"] = valid_utf8(*answer);
    if (options.ids) {
      one["prompt_ids"] = turn.prompt;
      one["answer_ids"] = turn.answer;
    }
    json["turns"].push_back(std::move(one));
  }
  print_line(json, io.out);
  io.out << std::flush;
  return kExitOk;
}

Result<int> run_export_conversation(const ExportConversationOptions& options,
                                    CommandContext& context) {
  CommandIo& io = context.io;
  EMBER_ASSIGN(const std::shared_ptr<StoreReader> reader, context.open_reader(options.store));
  EMBER_ASSIGN(const Conversation talk, load_conversation(reader->conversations(), options.id));
  PrefixText text(*reader);
  std::ostringstream form;
  if (options.form == ConversationForm::kText) {
    print_conversation(talk, text, form);
  } else {
    // Its note may be lost: the talk is not.
    const Result<NamespaceNote> note = reader->name_space(talk.name_space);
    form << export_json(talk, note.ok() ? *note : NamespaceNote{}, text) << '\n';
  }
  if (options.file.empty() || options.file == "-") {
    io.out << form.str() << std::flush;
    return kExitOk;
  }
  EMBER_ASSIGN(const std::unique_ptr<OutputFile> file, OutputFile::open(options.file, io));
  EMBER_TRY(file->write(form.str()));
  EMBER_TRY(file->finish());
  if (options.json) {
    print_line({{"conversation", talk.id}, {"file", options.file}, {"turns", talk.turns.size()}},
               io.out);
  } else {
    io.out << options.file << ": conversation " << talk.id << ", "
           << counted(talk.turns.size(), "turn") << std::endl;
  }
  return kExitOk;
}

}  // namespace ember
