// Export plan: which blocks, conversations and namespaces an export takes, before a byte is read of
// any latent.
//
// Journey    flags, block_tree, store_reader -> [export_plan] -> export
// Owns       a bit for each block of the tree
// Invariant  whatever is chosen is chosen with all blocks before it, and nothing of another scope
//            but the shared blocks that it hangs under
// Threads    one
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/transfer/transfer_format.h"
#include "tools/commands/look/block_tree.h"
#include "tools/commands/transfer/export.h"

namespace ember {

struct ExportPlan {
  std::vector<bool> chosen;  // by node of the tree
  std::vector<Conversation> conversations;  // heads
  TransferManifest manifest;
  // Of the tokenizers, in the order of the manifest: where their files lie.
  std::vector<std::string> tokenizer_folders;
  uint64_t unreachable = 0;
  std::vector<std::string> damage;  // what was chosen and cannot be exported, a line each
  uint64_t left_out = 0;            // blocks and conversations of it
};

// Errors: kInvalidArgument where the flags name nothing; those of reading records.
Result<ExportPlan> plan_export(const ExportOptions& options, StoreReader& reader,
                               const BlockTree& tree);

}  // namespace ember
