// Prompt match: what a store knows of a prompt, and where and why it ends to know it.
//
// Journey    tokens, block_tree -> [prompt_match] -> explain, warm, rm
// Invariant  the same blocks match as in the holder's index: hashes locate, tokens decide; the last
//            token of a prompt is never taken from the store
// Threads    any
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "prefix_index/journey.h"
#include "prefix_index/token.h"
#include "store/store_reader.h"
#include "tools/commands/look/block_tree.h"

namespace ember {

enum class MatchEnd : uint8_t {
  kWhole,    // all of the prompt is known, but for its last token
  kDiffers,  // the store knows another token in the place
  kUnknown,  // nothing in the store goes on from there
  kDamaged,  // the next block is a hole: its bytes were proven wrong
  kNothing,  // the store has no block of this namespace, scope and numerics build
};

struct TierRun {
  Tier tier = Tier::kDisk;
  uint64_t tokens = 0;
};

// Which blocks may match.
struct MatchPlace {
  NamespaceHash name_space;
  std::string scope;
  std::optional<uint64_t> build;  // only of this numerics build; absent: of any
};

struct PromptMatch {
  NamespaceHash name_space;
  std::optional<uint64_t> build;
  uint32_t block_tokens = 0;    // of a full block; 0: not known
  uint64_t tokens = 0;          // that would be restored
  std::vector<TierRun> runs;    // from the front on, by the best tier of each block
  std::vector<uint32_t> nodes;  // of the tree, from the first block on
  MatchEnd end = MatchEnd::kNothing;
  // kDiffers: at token `tokens`. What the store has there, from that token on.
  BlockHash other;
  std::vector<TokenId> other_tokens;
};

// Errors: those of reading records.
Result<PromptMatch> match_prompt(StoreReader& reader, const BlockTree& tree, TokenSpan prompt,
                                 const MatchPlace& place);

}  // namespace ember
