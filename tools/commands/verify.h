// verify: reads and proves every byte that a store would ever give back.
//
// Journey    disk_tier, conversations -> [verify] -> a verdict
// Invariant  reads only; a block counts as damaged once, however much of it is
// Threads    main
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/quarantine.h"
#include "store/encryption.h"

namespace ember {

struct VerifyOptions {
  EncryptionOptions encryption;
  std::string store;  // empty: default_store_path()
  bool json = false;
};

struct VerifyReport {
  uint64_t blocks = 0;         // block and tail records read
  uint64_t groups = 0;         // layer groups read, decoded and compared with their checksums
  uint64_t conversations = 0;  // loaded whole
  uint64_t damaged = 0;        // records, blocks and conversations that are not what was written
  uint64_t unreachable = 0;    // whole, but their parent is not there: lost in a crash, no damage
  std::vector<QuarantineRow> quarantined;  // found wrong in the past and kept aside; no damage now
  std::vector<std::string> unreadable_files;
  std::vector<std::string> details;  // one line for each damage
  std::string reason;                // why the store cannot be opened; empty when it can
  bool good() const { return damaged == 0 && unreadable_files.empty() && reason.empty(); }
};

VerifyReport verify_store(const std::string& path, const EncryptionOptions& encryption = {});

// Exit code 1 when anything is damaged or the store cannot be opened.
Result<int> run_verify(const VerifyOptions& options, std::ostream& out);

}  // namespace ember
