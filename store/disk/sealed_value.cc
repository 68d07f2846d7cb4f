// Sealing small values and proving them.
#include "store/disk/sealed_value.h"

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "prefix_index/block_hash.h"

namespace ember {
namespace {

uint64_t seal_of(std::string_view key, std::string_view body) {
  std::array<char, 64> small;  // as nearly all are: a million of them are opened with a store
  if (key.size() + body.size() <= small.size()) {
    std::copy(body.begin(), body.end(), std::copy(key.begin(), key.end(), small.begin()));
    return checksum64(as_bytes({small.data(), key.size() + body.size()}));
  }
  std::string both(key);
  both.append(body);
  return checksum64(as_bytes(both));
}

}  // namespace

std::string sealed(std::string_view key, std::string body) {
  append_value(body, seal_of(key, body));
  return body;
}

std::optional<std::string_view> unsealed(std::string_view key, std::string_view value) {
  if (value.size() < kSealBytes) return std::nullopt;
  const std::string_view body = value.substr(0, value.size() - kSealBytes);
  if (seal_of(key, body) != load_unaligned<uint64_t>(body.data() + body.size())) {
    return std::nullopt;
  }
  return body;
}

}  // namespace ember
