// Slot copies: the runs of bytes that move a block's rows from one slot to another.
//
// Journey    restore, offload -> [slot_copies] -> Device::copy
// Invariant  only rows of tokens that the block has are moved; both sides have the block's spacing
// Threads    any; pure
// Not here   when they are moved (store/cache/restore_executor.h, store/cache/offload_executor.h)
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device.h"
#include "store/kv_layout.h"

namespace ember {

// Appends the copies of the first `tokens` rows of each layer of a group: one run for a full block.
void append_group_copies(const KvLayout& layout, uint32_t group, uint32_t tokens,
                         const std::byte* from, std::byte* to, std::vector<Copy>& copies);

// What a slot holds before a load has proven its bytes: NaN in bf16, fp16, fp32 and e4m3.
inline constexpr std::byte kPoison{0xff};

// Appends copies of `poison_row` (row_bytes of kPoison) over the first and the last of the slot's
// `tokens` rows in every layer. A load fills from the front, so one that is missing, short or torn
// leaves a NaN in a row that attention reads; poisoning every byte would cost as much as the load.
void append_poison_copies(const KvLayout& layout, uint32_t tokens, const std::byte* poison_row,
                          std::byte* to, std::vector<Copy>& copies);
// The same, at once, for memory that this process can write.
void poison_slot(const KvLayout& layout, uint32_t tokens, std::byte* slot);

}  // namespace ember
