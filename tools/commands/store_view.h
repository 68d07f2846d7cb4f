// Store view: a store at rest, opened to be looked at: no model, no lock, not a byte written.
//
// Journey    disk_tier, conversations -> [store_view] -> stat, ls, verify
// Owns       the read-only directory, disk tier, conversations and quarantine
// Invariant  whatever happens, the store's files stay as they are
// Threads    main
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/conversations.h"
#include "store/disk_tier.h"
#include "store/quarantine.h"
#include "store/store_directory.h"

namespace ember {

struct StoreView {
  std::unique_ptr<StoreDirectory> directory;
  std::unique_ptr<DiskTier> disk;
  std::unique_ptr<Conversations> conversations;
  std::unique_ptr<Quarantine> quarantine;

  // Errors: those of the three, naming the path; kInvalidArgument without the right key.
  // `path` empty: default_store_path().
  static Result<StoreView> open(const std::string& path, const EncryptionOptions& encryption);
};

// The path that a --store flag means.
std::string store_path_of(const std::string& flag);

// Bytes of all files below `path`, as their lengths say.
uint64_t directory_bytes(const std::string& path);

// Sorts so that a block stands right before its children; blocks whose parent is not there are
// first blocks too. The order of siblings is that of their hashes.
using RecordRow = std::pair<BlockRecord, TouchRecord>;
void sort_by_chain(std::vector<RecordRow>& rows);

}  // namespace ember
