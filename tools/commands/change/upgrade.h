// upgrade: brings a store of an older version to the one that this program reads.
//
// Journey    IDENTITY -> [upgrade] -> migrations, one after another
// Invariant  a store of a version without a way to the current one is refused by name and left as
//            it was; a current one is not touched
// Threads    main
// Not here   reading of old formats by anyone else: the store opens its own version only
#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ember {

// One step between two versions of the store. `run` takes the store's lock itself, may be run again
// after a crash in its midst, and writes the identity file with the new version last.
struct Migration {
  uint32_t from = 0;
  uint32_t to = 0;
  std::string_view what;
  Status (*run)(const std::string& store) = nullptr;
};

// All migrations that this program has. None yet: there has been one version only.
std::span<const Migration> known_migrations();

// The steps from one version to another, in order; none where they are equal.
// Errors: kUnsupported naming both versions.
Result<std::vector<Migration>> plan_upgrade(uint32_t from, uint32_t to,
                                            std::span<const Migration> known);

struct UpgradeOptions {
  std::string store;  // empty: default_store_path()
  bool dry_run = false;
  bool json = false;
};

// Exit code 1 when the store cannot be read or has no way to the current version.
Result<int> run_upgrade(const UpgradeOptions& options, std::ostream& out);

}  // namespace ember
