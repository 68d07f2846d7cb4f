// ls: the blocks of a store, one a line, parents before children; or its conversations.
//
// Journey    disk_tier, conversations -> [ls] -> a table or one JSON object a line
// Invariant  reads only
// Threads    main
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "base/result.h"
#include "store/encryption.h"

namespace ember {

struct LsOptions {
  EncryptionOptions encryption;
  std::string store;           // empty: default_store_path()
  uint64_t limit = 50;         // lines; 0: all
  bool conversations = false;  // list these instead of blocks
  bool json = false;
};

// Errors: those of opening the store.
Status run_ls(const LsOptions& options, std::ostream& out);

}  // namespace ember
