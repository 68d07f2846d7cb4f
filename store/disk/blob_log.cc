// Walking through a blob file.
#include "store/disk/blob_log.h"

#include <algorithm>
#include <optional>

#include "base/bytes.h"
#include "store/disk/fast_crc32c.h"

namespace ember {
namespace {

constexpr size_t kHeaderBytes = 30;
constexpr size_t kFooterBytes = 32;
constexpr uint32_t kMagic = 2395959;
constexpr size_t kRecordBytes = 32;
constexpr size_t kProvenBytes = 24;
constexpr uint32_t kMaskDelta = 0xa282ead8u;
constexpr uint64_t kKeyBytes = 22;  // epoch, hash, group (store/disk/disk_format.h)

// The value that begins `bytes`; nothing where none does.
std::optional<BlobValue> value_at(std::string_view bytes) {
  if (bytes.size() < kRecordBytes + kKeyBytes) return std::nullopt;
  const auto key_bytes = load_unaligned<uint64_t>(bytes.data());
  const auto value_bytes = load_unaligned<uint64_t>(bytes.data() + 8);
  if (key_bytes != kKeyBytes) return std::nullopt;
  const uint32_t crc = crc32c_extend(0, bytes.data(), kProvenBytes);
  const uint32_t masked = ((crc >> 15) | (crc << 17)) + kMaskDelta;
  if (masked != load_unaligned<uint32_t>(bytes.data() + kProvenBytes)) return std::nullopt;
  if (value_bytes > bytes.size() - kRecordBytes - kKeyBytes) return std::nullopt;
  return BlobValue{bytes.substr(kRecordBytes, kKeyBytes),
                   bytes.substr(kRecordBytes + kKeyBytes, value_bytes)};
}

}  // namespace

uint64_t scan_blob_log(std::string_view file, const std::function<void(const BlobValue&)>& visit) {
  uint64_t strange = 0;
  size_t at = std::min(kHeaderBytes, file.size());
  while (at < file.size()) {
    const std::string_view rest = file.substr(at);
    const bool footer =
        rest.size() == kFooterBytes && load_unaligned<uint32_t>(rest.data()) == kMagic;
    if (footer) break;
    const std::optional<BlobValue> value = value_at(rest);
    if (!value) {
      ++strange;
      ++at;
      continue;
    }
    visit(*value);
    at += kRecordBytes + value->key.size() + value->value.size();
  }
  return strange;
}

}  // namespace ember
