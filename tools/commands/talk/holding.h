// Holding: while a command has a store open, it answers the commands of others.
//
// Journey    holder_server -> [holding] -> a command of another's, run in this process
// Owns       the mailbox to the engine thread, the store's socket, the conversations of all
// Invariant  conversations and cache are touched on the engine thread only; a store that cannot
//            answer is a warning, never an error
// Threads    made, asked and ended on the engine thread; call() and the handler: any other
// Not here   which command is which (tools/foreign_commands.h), what a talk says (talk.h)
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stop_asked.h"
#include "engine/runtime/chat_session.h"
#include "engine/runtime/engine.h"
#include "engine/runtime/mailbox.h"
#include "service/holder/holder_server.h"
#include "tools/commands/conversation_claims.h"
#include "tools/commands/talk/engine_flags.h"

namespace ember {

class Holding;

// Runs a command line of another process with its streams; returns its exit code.
using ForeignCommand =
    std::function<int(const HolderRequest&, HolderStreams&, Holding& holding)>;

class Holding {
 public:
  // `foreign` empty: nobody is answered. All outlive it.
  Holding(Engine& engine, const EngineFlags& flags, ForeignCommand foreign);
  // Hangs up on others, whose turns are cancelled.
  ~Holding();
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

  Engine& engine() { return engine_; }  // on the engine thread, but for what says otherwise
  const EngineFlags& flags() const { return flags_; }
  const std::string& store() const { return store_; }

  // Runs `work` on the engine thread. Errors: it did not run: kCancelled when this process ends,
  // kBusy when the engine did not come to it in time. Any thread but the engine's.
  Status call(const std::function<void()>& work);
  // Begins something on the engine thread and waits for its ticket (zero: nothing to wait for).
  // Errors: the ticket's; those of call; kCancelled when `stopped` says so.
  Status wait_for(const std::function<Ticket()>& begin, const StopAsked& stopped);
  // The engine thread looks anew at what it waits for. Any thread.
  void wake() { static_cast<void>(mailbox_.post([] {})); }

  // With whose template others talk; null: not at all. Engine thread, before anyone talks.
  void set_template(const ChatTemplate* chat_template) { template_ = chat_template; }
  const ChatTemplate* chat_template() const { return template_; }

  // A conversation with its claim, from beginning to end; held here so that it goes on the engine
  // thread, whoever lets it go. All on the engine thread.
  ChatSession& keep(std::unique_ptr<ChatSession> session, ConversationClaim claim);
  void let_go(ChatSession& session);
  // A conversation has one writer: whoever holds what this returns. Null: somebody else is it.
  // Any thread.
  ConversationClaim claim(const std::string& conversation) {
    return claims_->claim(conversation);
  }
  const std::shared_ptr<ConversationClaims>& claims() const { return claims_; }

  // Talks under way, of others; counted from before their first word to after their last.
  void talk_begins() { ++talks_; }
  void talk_ends() {
    --talks_;
    wake();
  }
  size_t talks() const { return talks_; }

 private:
  Engine& engine_;
  const EngineFlags& flags_;
  std::string store_;
  ForeignCommand foreign_;
  std::atomic<const ChatTemplate*> template_{nullptr};
  std::atomic<size_t> talks_{0};
  struct Kept {
    ConversationClaim claim;  // goes last
    std::unique_ptr<ChatSession> session;
  };
  std::vector<Kept> sessions_;
  const std::shared_ptr<ConversationClaims> claims_ = std::make_shared<ConversationClaims>();
  Mailbox mailbox_;
  std::unique_ptr<HolderServer> server_;
};

// Runs `work` on a thread of its own while this one, the engine's, ticks: until it has ended, and
// for as long as `also`, which is told whether it has, holds.
void run_beside(Holding& holding, const std::function<void()>& work,
                const std::function<bool(bool ended)>& also);

}  // namespace ember
