// The device's slots and the view that kernels have of them.
#include "store/cache/device_pool.h"

namespace ember {

Result<std::unique_ptr<DevicePool>> DevicePool::make(Device& device, const KvLayout& layout,
                                                     uint32_t slots) {
  EMBER_ASSIGN(Buffer memory, device.allocate(layout.block_bytes() * slots));
  return std::unique_ptr<DevicePool>(new DevicePool(std::move(memory), layout, slots));
}

LatentCacheView DevicePool::layer_view(uint32_t layer) const {
  LatentCacheView view;
  view.pool = memory_.bytes();
  view.slot_bytes = layout_.block_bytes();
  view.layer_offset = layout_.layer_offset(layer);
  view.row_bytes = layout_.row_bytes();
  view.dtype = layout_.stream().dtype;
  view.block_tokens = layout_.block_tokens();
  return view;
}

}  // namespace ember
