// Command context: with whom a command speaks, and how it comes to a store: the same command runs
// in a process of its own and inside the process that holds the store.
//
// Journey    command line, holder's socket -> [command_context] -> the commands
// Invariant  a command writes to these streams only, and asks nobody else about a terminal
// Threads    the command's
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/runtime/scheduler.h"
#include "store/encryption.h"
#include "store/store_editor.h"
#include "store/store_reader.h"
#include "tools/commands/conversation_claims.h"

namespace ember {

struct CommandIo {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  size_t width = 80;                     // columns of the terminal, or what a pipe is given
  bool on_terminal = false;              // `out` is a terminal
  bool colour = false;                   // and shows it
  bool progress = false;                 // `err` is a terminal: bars are drawn there
  bool interactive = false;              // `in` is a terminal: somebody can be asked
  std::function<bool()> cancelled = {};  // whoever asked has gone; empty: never

  bool stopped() const { return cancelled && cancelled(); }
};

// `path` as it is meant in `folder`.
std::string path_from(const std::string& folder, const std::string& path);

struct StoreChoice {
  std::string path;  // empty: default_store_path()
  EncryptionOptions encryption;
  bool read_only = false;  // beside a holder that does not answer: as of its last flush

  std::string resolved() const { return path.empty() ? default_store_path() : path; }
};

using StoreOpener = std::function<Result<std::shared_ptr<StoreReader>>(const StoreChoice&)>;

// For changes. `disk_bytes`: the store's limit, as it is used with; 0: enough for what is there.
using EditorOpener =
    std::function<Result<std::shared_ptr<StoreEditor>>(const StoreChoice&, uint64_t disk_bytes)>;

// The running cache of the process that the command runs in.
struct LiveCache {
  BlockCache* cache = nullptr;  // to be touched within call() and wait_for()'s `begin` only
  // Runs a closure on the engine thread. Errors: why it did not: the process ends, or is too busy.
  std::function<Status(const std::function<void()>&)> call;
  // Begins something on the engine thread, and waits for its ticket (zero: nothing to wait for).
  // Errors: the ticket's; those of call; kCancelled when whoever asked has gone.
  std::function<Status(const std::function<Ticket()>& begin)> wait_for;
  uint64_t numerics_build = 0;  // of what it computes
};
using LiveOpener = std::function<Result<LiveCache>(const StoreChoice&)>;

// Runs another command, wherever the store is held, and returns what it printed.
// Errors: what it said on standard error.
using CommandAsker = std::function<Result<std::string>(const std::vector<std::string>& words)>;

// The limit of a store at rest that is changed without being told its limit: all of it fits.
// Errors: there is no store; those of looking at its IDENTITY.
Result<uint64_t> limit_for_changes(const std::string& path, const EncryptionOptions& encryption);

struct CommandContext {
  CommandIo io;
  StoreOpener open_reader;
  LiveOpener open_live;  // kInvalidArgument where this process does not hold the store
  EditorOpener open_editor;
  std::shared_ptr<ConversationClaims> claims = {};  // null: nobody talks in a conversation
  std::string folder = {};  // where it was called; empty: where this process is
  // Of a choice that names none; empty: default_store_path().
  std::string default_store = {};
  CommandAsker ask = {};    // empty: this is the process that holds the store
  std::function<std::optional<SchedulerLoad>()> load = {};  // there: what it is doing

  // Errors: kInvalidArgument with --read-only.
  Status may_change(const StoreChoice& choice) const;
  // For what looks at the store's files itself.
  std::string path_of(const StoreChoice& choice) const;
  // Nobody else begins to talk in it while the claim is kept (null where nobody does).
  // Errors: kBusy: somebody talks in it.
  Result<ConversationClaim> claim(const std::string& conversation) const;
};

}  // namespace ember
