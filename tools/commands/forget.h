// forget: makes what a scope left in a store unreadable, and on request removes its bytes.
//
// Journey    store/forget.h <- [forget] <- command line
// Invariant  nothing is changed with --dry-run, nor while another process holds the store
// Threads    main
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "base/result.h"
#include "store/encryption.h"
#include "store/forget.h"

namespace ember {

struct ForgetOptions {
  std::string store;  // empty: default_store_path()
  EncryptionOptions encryption;
  uint64_t disk_bytes = 0;  // 0: default_disk_bytes()
  ForgetRequest request;
  bool json = false;
};

// Exit code 1 when bytes stay although --now was given. Errors: those of opening the store and of
// forget_scope.
Result<int> run_forget(const ForgetOptions& options, std::ostream& out);

}  // namespace ember
