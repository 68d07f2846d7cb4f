// Block lines: how one block is shown in a listing, to a person or to a program.
//
// Journey    block_tree, prefix_text -> [block_lines] -> ls
// Invariant  field names are public; a line fits the terminal
// Threads    one
#pragma once

#include <cstdint>

#include "base/result.h"
#include "tools/commands/command_context.h"
#include "tools/commands/look/block_tree.h"
#include "tools/commands/look/prefix_text.h"

namespace ember {

struct BlockLinesOptions {
  bool json = false;
  bool text = true;
};

class BlockLines {
 public:
  BlockLines(const BlockLinesOptions& options, CommandIo& io, StoreReader& reader);

  void header();
  // Reads the record again, for its tokens. Errors: those of StoreReader::record.
  Status print(const BlockTree& tree, const BlockNode& node);
  void print(const BlockTree& tree, const BlockNode& node, const BlockRecord& record);
  // What was not shown, and what cannot be.
  void footer(uint64_t left_out, uint64_t unreadable);

 private:
  const BlockLinesOptions options_;
  CommandIo& io_;
  StoreReader& reader_;
  PrefixText text_;
  const int64_t now_us_;
};

// The tiers that hold a block, by the bits of BlockNode::tiers: "device host disk".
std::string tiers_text(uint8_t tiers);

}  // namespace ember
