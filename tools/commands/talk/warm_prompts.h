// Warm prompts: what warm is asked to bring into the cache, one prompt after the other, as tokens.
//
// Journey    flags -> files, conversations, stored blocks -> [warm_prompts] -> warmer
// Invariant  one line of a file is held at a time; a prompt that cannot be read is told and passed
//            over
// Threads    the command's
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/runtime/engine.h"
#include "engine/text/chat_template.h"
#include "store/store_reader.h"
#include "tools/commands/command_context.h"
#include "tools/commands/prompt_source.h"

namespace ember {

inline constexpr size_t kMostRequestLineBytes = size_t{16} << 20;

struct WarmSources {
  // Alone: the front that every conversation with it has, up to where its question begins; with
  // files of raw text the system message before each.
  SystemFlags system;
  std::vector<std::string> prompt_files;
  bool chat = false;  // they are users' messages
  std::vector<std::string> messages_files;
  std::vector<std::string> request_files;  // JSONL: a chat request or {"prompt": text} a line
  std::vector<std::string> conversations;  // ids, or "last"
  std::vector<std::string> prefixes;       // hashes: these and all before them
  std::string scope = "shared";

  bool empty() const {
    return !system.given() && prompt_files.empty() && messages_files.empty() &&
           request_files.empty() && conversations.empty() && prefixes.empty();
  }
};

struct WarmPrompt {
  std::vector<TokenId> tokens;
  RequestScope scope;
  bool stored = false;  // named by what the store has: brought to RAM, never computed
};

struct WarmTools {
  Engine& engine;  // encode() and what never changes
  std::function<Result<const ChatTemplate*>()> chat_template;
  std::function<Result<std::shared_ptr<StoreReader>>()> reader;
  CommandIo& io;
};

// Shows each prompt, or why it is none, with its name. Ends early where `visit` returns an error,
// and when the command is stopped. Errors: that of `visit`; kCancelled.
using WarmVisitor = std::function<Status(const std::string& name, Result<WarmPrompt> prompt)>;
Status visit_warm_prompts(const WarmSources& sources, const WarmTools& tools,
                          const WarmVisitor& visit);

}  // namespace ember
