// Chat session: one conversation: its turns in the store, its tokens in the cache, its answer
// resumed.
//
// Journey    user text -> [chat_session] -> request -> answer; conversations database beside it
// Owns       the conversation's token ids: what was sampled is kept as sampled, never tokenised
//            anew
// Invariant  a user's message is synced before its prefill, sampled ids every 16 tokens and at the
//            turn's end; a turn is reported durable only after its latents, tail and text are
//            synced
// Threads    engine thread only
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/runtime/engine.h"
#include "store/conversations.h"

namespace ember {

inline constexpr uint32_t kSampledSyncTokens = 16;

struct TurnOptions {
  uint32_t max_tokens = 256;
  float temperature = 0;
  uint64_t seed = 1;
  std::function<void(TokenId id, std::string_view text)>
      on_text;  // as it is drawn; text may be empty
  std::function<void(size_t computed, size_t prompt)> on_prefill;  // empty: the engine's own
};

struct TurnOutcome {
  Outcome outcome;                  // token_ids: those drawn now (not those before a cut)
  std::vector<TokenId> answer_ids;  // the whole answer
  std::string answer;               // the whole answer's text
  bool durable = false;             // text, latents and tail survive a crash from here on
};

// 16 digits that no conversation has. Threads: any.
std::string new_conversation_id();
// `id` itself, or that of the newest where it is "last". Threads: any. Errors: kInvalidArgument
// (there is none), kCorruption (a conversation that cannot be read might be the newest).
Result<std::string> conversation_id(Conversations& conversations, const std::string& id);
// A conversation as the engine can go on with it: whole, held with this model and template, and
// with the tokens of a question that was stored as text alone. `id`: 16 digits. Threads: any.
// Errors: kInvalidArgument (none such, or another model or template: both are named), kCorruption.
Result<Conversation> conversation_to_resume(Engine& engine, const ChatTemplate& chat_template,
                                            Conversations& conversations, const std::string& id);

class ChatSession {
 public:
  // Begins a conversation. Without a usable store it lives in memory only.
  static Result<std::unique_ptr<ChatSession>> begin(Engine& engine,
                                                    const ChatTemplate& chat_template,
                                                    std::string_view system);
  // With what conversation_to_resume returned.
  static std::unique_ptr<ChatSession> resume(Engine& engine, const ChatTemplate& chat_template,
                                             Conversation conversation);
  // `id`: a conversation's id, or "last" for the newest. Errors: those of the two functions above.
  static Result<std::unique_ptr<ChatSession>> resume(Engine& engine,
                                                     const ChatTemplate& chat_template,
                                                     const std::string& id);
  virtual ~ChatSession() = default;

  virtual const Conversation& conversation() const = 0;
  // True when the last answer was cut (by a kill): finish_answer goes on with it.
  virtual bool has_cut_answer() const = 0;

  // A turn runs in the scheduler's ticks, beside those of other sessions; `done` is called once,
  // perhaps before start_* returns, unless the session goes first: then the turn is cancelled.
  using TurnDone = std::function<void(const Result<TurnOutcome>&)>;
  // Goes on with a cut answer, with its own seed, temperature and limit. `on_text` first gets the
  // part that is already there.
  virtual void start_finish(const TurnOptions& options, TurnDone done) = 0;
  // The tokens that `user` adds when it is asked next. Threads: any, while no turn is under way.
  // Errors: those of the tokenizer.
  virtual Result<std::vector<TokenId>> tokens_of(std::string_view user) = 0;
  // Asks and answers one turn; `prompt` is from tokens_of. Errors: kInvalidArgument when it no
  // longer fits the context (both lengths are named); kCancelled; those of the request. After the
  // last two the answer is a cut one.
  virtual void start_ask(std::string_view user, std::vector<TokenId> prompt,
                         const TurnOptions& options, TurnDone done) = 0;
  // Ends the turn under way, if there is one, with kCancelled.
  virtual void cancel() = 0;

  // The same, ticking until it is done.
  virtual Result<TurnOutcome> finish_answer(const TurnOptions& options) = 0;
  virtual Result<TurnOutcome> ask(std::string_view user, const TurnOptions& options) = 0;
};

}  // namespace ember
