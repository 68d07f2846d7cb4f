// Block proof: whether a record with its payloads can be what it says, and a conversation too:
// checked before a store takes what another program has made.
//
// Journey    transfer_reader -> [block_proof] -> a block that may be stored
// Invariant  nothing is decoded that is longer than the layout says, nor into more than twice the
//            bytes of its payload
// Threads    any; pure
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "store/conversations.h"
#include "store/kv_layout.h"
#include "store/record.h"

namespace ember {

// Shape, token ids, and each group decoded and compared with its checksum; latents that no model
// computes (NaN) are refused. Errors: kCorruption, kUnsupported (a codec).
Status prove_block(const BlockRecord& record, std::span<const std::string_view> payloads,
                   const KvLayout& layout);

// Token ids, numbers and states. Errors: kCorruption.
Status prove_conversation(const Conversation& conversation);

}  // namespace ember
