// Local context: a command in a process of its own: its terminal, and stores at rest.
//
// Journey    command line -> [local_context] -> the commands
// Invariant  a store that another process holds is read only where --read-only says so
// Threads    main
#pragma once

#include "tools/commands/command_context.h"

namespace ember {

// Standard streams; colour and bars where these are terminals (none with NO_COLOR, TERM=dumb).
CommandContext local_context();

// Of damage: with what to do about it.
Error with_next_step(const Error& error);

// Refuses: nobody holds the store, or whoever does was not asked.
Result<LiveCache> no_live_cache(const StoreChoice& choice);

// Opens a store at rest. Errors: kBusy naming the process that holds it, without `read_only`; those
// of open_resting_store.
Result<std::shared_ptr<StoreReader>> open_at_rest(const StoreChoice& choice);

// Opens it for changes, with its lock. `disk_bytes` as for an EditorOpener. Errors: those of
// open_resting_editor; kInvalidArgument with `read_only`.
Result<std::shared_ptr<StoreEditor>> edit_at_rest(const StoreChoice& choice, uint64_t disk_bytes);

}  // namespace ember
