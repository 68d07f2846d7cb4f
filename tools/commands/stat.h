// stat: what a store holds and how well it is, without a model.
//
// Journey    disk_tier -> [stat] -> a table or one JSON object
// Invariant  reads only; every figure is counted or measured at the moment of the call
// Threads    main
#pragma once

#include <ostream>
#include <string>

#include "base/result.h"
#include "store/encryption.h"

namespace ember {

struct StatOptions {
  EncryptionOptions encryption;
  std::string store;  // empty: default_store_path()
  bool json = false;
};

// Exit code 1 when the store cannot be opened; the report then says why.
Result<int> run_stat(const StatOptions& options, std::ostream& out);

}  // namespace ember
