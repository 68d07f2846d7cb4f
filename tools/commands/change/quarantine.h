// quarantine: what a store keeps aside: records that were proven wrong, broken files of databases.
//
// Journey    store_reader, taken_aside -> [quarantine] -> a person; clear: store_editor
// Invariant  list and show change nothing; clear removes what it named, and asks
// Threads    the command's
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "tools/commands/command_context.h"
#include "tools/commands/confirm.h"

namespace ember {

struct ListQuarantineOptions {
  StoreChoice store;
  bool json = false;
};

struct ShowQuarantineOptions {
  StoreChoice store;
  std::string file;
  bool json = false;
};

struct ClearQuarantineOptions {
  StoreChoice store;
  std::vector<std::string> files;  // none: all
  Consent consent;
  bool json = false;
};

Result<int> run_list_quarantine(const ListQuarantineOptions& options, CommandContext& context);
// Errors: kInvalidArgument without such a file; kCorruption where it is damaged itself.
Result<int> run_show_quarantine(const ShowQuarantineOptions& options, CommandContext& context);
Result<int> run_clear_quarantine(const ClearQuarantineOptions& options, CommandContext& context);

}  // namespace ember
