// Block proof: reads every byte of a block and compares it with what its record says.
//
// Journey    store_reader -> [block_proof] -> verify, repair
// Invariant  reading only; no faster than asked for
// Threads    the command's
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/store_reader.h"
#include "tools/commands/command_context.h"

namespace ember {

// A record that has given up its groups, and stays for what hangs below it: computing it anew
// brings that back.
bool is_hole(const BlockRecord& record);

class BlockProof {
 public:
  // `bytes_per_second`: most raw bytes proven; 0: no limit.
  BlockProof(StoreReader& reader, CommandIo& io, uint64_t bytes_per_second);

  // Whether the hash follows from its parent and tokens, and each group (a hole has none) is what
  // was written.
  // Errors: kCorruption naming the group; kIo; kBusy where it changed meanwhile, or went.
  Status prove(const BlockRecord& record);
  uint64_t groups() const { return groups_; }
  uint64_t raw_bytes() const { return raw_bytes_; }

 private:
  bool has_changed(const BlockRecord& record);
  void keep_pace() const;

  StoreReader& reader_;
  CommandIo& io_;
  const uint64_t bytes_per_second_;
  const int64_t began_us_;
  std::string raw_;
  uint64_t groups_ = 0;
  uint64_t raw_bytes_ = 0;
};

}  // namespace ember
