// Device memory by anonymous mmap, and the buffer that gives it back.
#include "kernels/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "kernels/device.h"

namespace ember {
namespace {

constexpr size_t kPage = 4096;

size_t mapped_bytes(size_t bytes) { return std::max(kPage, (bytes + kPage - 1) / kPage * kPage); }

}  // namespace

Result<void*> map_pages(size_t bytes) {
  constexpr size_t kLargest = size_t{1} << 62;
  void* data = MAP_FAILED;
  if (bytes <= kLargest) {
    data = mmap(nullptr, mapped_bytes(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                -1, 0);
  }
  if (data == MAP_FAILED) {
    return {ErrorCode::kCapacity,
            "memory: the operating system refused " + human_bytes(bytes) + " (" +
                std::to_string(bytes) + " bytes); ask for less, or free memory"};
  }
  return data;
}

void unmap_pages(void* data, size_t bytes) {
  EMBER_CHECK(munmap(data, mapped_bytes(bytes)) == 0, "memory is given back as it was taken");
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    if (data_ != nullptr) owner_->free(data_, bytes_, pinned_);
    owner_ = std::exchange(other.owner_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    pinned_ = std::exchange(other.pinned_, false);
  }
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) owner_->free(data_, bytes_, pinned_);
}

}  // namespace ember
