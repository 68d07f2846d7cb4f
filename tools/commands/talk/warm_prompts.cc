// Reading prompts from every kind of source.
#include "tools/commands/talk/warm_prompts.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/text/text_file.h"
#include "store/tenants.h"
#include "tools/commands/bounded_line.h"
#include "tools/commands/look/block_filter.h"
#include "tools/commands/look/conversations.h"
#include "tools/commands/look/stored_prefix.h"

namespace ember {
namespace {

class Visit {
 public:
  Visit(const WarmSources& sources, const WarmTools& tools, const WarmVisitor& visit)
      : sources_(sources), tools_(tools), visit_(visit) {
    if (sources.scope != kSharedScopeName) scope_.tenant = sources.scope;
  }

  Status run() {
    EMBER_ASSIGN(system_, read_system(sources_.system));
    if (sources_.system.given() && sources_.prompt_files.empty()) {
      const std::string name = sources_.system.file.value_or("system");
      EMBER_TRY(show(name, from_messages({{{"system", system_}}, {}})));
    }
    for (const std::string& file : sources_.prompt_files) {
      EMBER_TRY(show(file, from_raw_file(file)));
    }
    for (const std::string& file : sources_.messages_files) {
      EMBER_TRY(show(file, from_messages_file(file)));
    }
    for (const std::string& file : sources_.request_files) EMBER_TRY(show_lines(file));
    for (const std::string& id : sources_.conversations) {
      EMBER_TRY(show("conversation " + id, from_conversation(id)));
    }
    if (!sources_.prefixes.empty()) EMBER_TRY(show_prefixes());
    return {};
  }

 private:
  Status show(const std::string& name, Result<WarmPrompt> prompt) {
    if (tools_.io.stopped()) return {ErrorCode::kCancelled, "stopped"};
    return visit_(name, std::move(prompt));
  }

  Result<WarmPrompt> from_text(std::string_view text, bool bos) {
    WarmPrompt prompt;
    prompt.scope = scope_;
    EMBER_ASSIGN(prompt.tokens, tools_.engine.encode(text, bos));
    if (prompt.tokens.empty()) return Error{ErrorCode::kInvalidArgument, "it has no tokens"};
    return prompt;
  }
  Result<WarmPrompt> from_raw(std::string text) {
    if (sources_.system.given()) {
      return from_messages({{{"system", system_}, {"user", std::move(text)}}, {}});
    }
    if (sources_.chat) return from_messages({{{"user", std::move(text)}}, {}});
    return from_text(text, tools_.engine.tokenizer().adds_bos());
  }
  Result<WarmPrompt> from_raw_file(const std::string& file) {
    EMBER_ASSIGN(std::string text, read_text_file(file));
    return from_raw(std::move(text));
  }

  // Ends where an answer begins; after a system message alone where a question begins.
  Result<WarmPrompt> from_messages(ChatInput input) {
    EMBER_ASSIGN(const ChatTemplate* const chat_template, tools_.chat_template());
    const std::string& last = input.messages.back().role;
    if (last == "system") return from_front(std::move(input), *chat_template);
    EMBER_ASSIGN(const RenderedPrompt rendered,
                 chat_template->render(input, last != "assistant"));
    return from_text(rendered.text, false);
  }
  // What two conversations have in common that differ from their first question on.
  Result<WarmPrompt> from_front(ChatInput input, const ChatTemplate& chat_template) {
    std::optional<WarmPrompt> front;
    for (const char* question : {"a", "Why"}) {
      ChatInput asked = input;
      asked.messages.push_back(Message{"user", question});
      EMBER_ASSIGN(const RenderedPrompt rendered, chat_template.render(asked, true));
      EMBER_ASSIGN(WarmPrompt whole, from_text(rendered.text, false));
      if (!front) {
        front = std::move(whole);
        continue;
      }
      const auto split = std::mismatch(front->tokens.begin(), front->tokens.end(),
                                       whole.tokens.begin(), whole.tokens.end());
      front->tokens.erase(split.first, front->tokens.end());
    }
    if (front->tokens.empty()) {
      return Error{ErrorCode::kInvalidArgument, "the template puts the question first"};
    }
    return std::move(*front);
  }
  Result<WarmPrompt> from_messages_file(const std::string& file) {
    EMBER_ASSIGN(const std::string text, read_text_file(file));
    EMBER_ASSIGN(ChatInput input, parse_messages(text));
    return from_messages(std::move(input));
  }

  Status show_lines(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in.is_open()) {
      return show(file, Error{ErrorCode::kIo, file + ": cannot be read: " + std::strerror(errno)});
    }
    std::string line;
    for (uint64_t number = 1;; ++number) {
      const LineEnd end = read_bounded_line(in, line, kMostRequestLineBytes);
      const std::string name = file + ":" + std::to_string(number);
      if (end == LineEnd::kTooLong) {
        return show(name, Error{ErrorCode::kCapacity,
                                "the line is longer than " + std::to_string(kMostRequestLineBytes) +
                                    " bytes; what follows it is not read"});
      }
      if (end == LineEnd::kNoMore) return {};
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      EMBER_TRY(show(name, from_request(line)));
    }
  }
  Result<WarmPrompt> from_request(const std::string& line) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_discarded()) return Error{ErrorCode::kInvalidArgument, "it is no JSON"};
    const bool raw = json.is_object() && json.contains("prompt") && !json.contains("messages");
    if (!raw) {
      EMBER_ASSIGN(ChatInput input, parse_messages(line));
      return from_messages(std::move(input));
    }
    if (!json["prompt"].is_string()) {
      return Error{ErrorCode::kInvalidArgument, "prompt: expected a string"};
    }
    return from_text(json["prompt"].get<std::string>(), tools_.engine.tokenizer().adds_bos());
  }

  Status same_model(const NamespaceHash& found) const {
    const NamespaceHash& own = tools_.engine.identity().name_space;
    if (found == own) return {};
    return {ErrorCode::kInvalidArgument, "it is of another model or precision (namespace " +
                                             found.hex() + "; this one is " + own.hex() + ")"};
  }
  Result<WarmPrompt> from_conversation(const std::string& id) {
    EMBER_ASSIGN(const std::shared_ptr<StoreReader> reader, tools_.reader());
    EMBER_ASSIGN(const Conversation talk, load_conversation(reader->conversations(), id));
    EMBER_TRY(same_model(talk.name_space));
    WarmPrompt prompt;
    if (talk.scope != kSharedScopeName) prompt.scope.tenant = talk.scope;
    for (const Turn& turn : talk.turns) {
      prompt.tokens.insert(prompt.tokens.end(), turn.prompt.begin(), turn.prompt.end());
      prompt.tokens.insert(prompt.tokens.end(), turn.answer.begin(), turn.answer.end());
    }
    if (prompt.tokens.empty()) return Error{ErrorCode::kInvalidArgument, "it has no tokens yet"};
    return prompt;
  }

  // The store is walked once for all of them.
  Status show_prefixes() {
    Result<std::shared_ptr<StoreReader>> reader = tools_.reader();
    Result<BlockTree> tree = reader.ok() ? read_tree(**reader, tools_.io)
                                         : Result<BlockTree>(reader.error());
    for (const std::string& digits : sources_.prefixes) {
      const std::string name = "prefix " + digits;
      if (!tree.ok()) {
        EMBER_TRY(show(name, tree.error()));
        continue;
      }
      EMBER_TRY(show(name, from_prefix(digits, **reader, *tree)));
    }
    return {};
  }
  Result<WarmPrompt> from_prefix(const std::string& digits, StoreReader& reader,
                                 const BlockTree& tree) const {
    EMBER_ASSIGN(StoredPrefix prefix, stored_prefix(digits, reader, tree));
    EMBER_TRY(same_model(prefix.name_space));
    return WarmPrompt{std::move(prefix.tokens), std::move(prefix.scope), true};
  }

  const WarmSources& sources_;
  const WarmTools& tools_;
  const WarmVisitor& visit_;
  RequestScope scope_;
  std::string system_;
};

}  // namespace

Status visit_warm_prompts(const WarmSources& sources, const WarmTools& tools,
                          const WarmVisitor& visit) {
  return Visit(sources, tools, visit).run();
}

}  // namespace ember
