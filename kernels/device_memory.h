// Device memory: pages of the operating system, zeroed when first touched.
//
// Journey    none; under Device::allocate of both devices
// Threads    any
#pragma once

#include <cstddef>

#include "base/result.h"

namespace ember {

// At least one page, aligned to it. Errors: kCapacity with the size that was asked for.
Result<void*> map_pages(size_t bytes);
// `bytes` as given to map_pages.
void unmap_pages(void* data, size_t bytes);

}  // namespace ember
