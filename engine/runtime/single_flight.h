// Single flight: a prefix that one request is computing is not computed by a second one beside it.
//
// Journey    queued requests -> [single_flight] -> admission; the prefix then comes by restore
// Invariant  a request waits only while the one that it waits for is restoring or prefilling, and
//            only for whole blocks that this one will commit where both may find them: the wait
//            ends with that prefill, and nobody waits for another tenant's own blocks
// Threads    engine thread only; pure
// Not here   a block that is being restored (store/cache/restore_executor.h shares its fill)
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "engine/runtime/sequence.h"

namespace ember {

using Sequences = std::span<const std::unique_ptr<Sequence>>;

// Whether some running request is on its way to more of this one's prefix, in whole blocks, than
// the cache knows now (`known_tokens`). Notes in `queued` which one, and how far it must get.
bool awaits_prefix(Sequence& queued, Sequences running, size_t known_tokens, size_t block_tokens);

// Whether the request that was noted is still on its way there.
bool still_awaits(const Sequence& queued, Sequences running);

}  // namespace ember
