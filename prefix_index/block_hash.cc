// Block hash: XXH3-128 over framed fields. This file alone includes xxHash.
//
// What is hashed, in this order; a field is {tag u8, length u32, bytes}, little-endian:
//
//   tag 0  purpose             "emberkv block 1": no other use of the secret gives the same bytes
//   tag 1  namespace           16
//   tag 2  scope               its length
//   tag 3  parent hash         16            } of a block; H_0 ends before these
//   tag 4  token ids           4 each, i32   }
#include "prefix_index/block_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/check.h"

namespace ember {
namespace {

enum class Field : uint8_t { kPurpose = 0, kNamespace = 1, kScope = 2, kParent = 3, kTokens = 4 };
constexpr std::string_view kPurpose = "emberkv block 1";
constexpr size_t kShortBytes = 512;
constexpr size_t kFrameBytes = sizeof(Field) + sizeof(uint32_t);

static_assert(kHashSecretBytes >= XXH3_SECRET_SIZE_MIN);
static_assert(sizeof(XXH128_canonical_t) == sizeof(BlockHash));

// Big-endian, as the tools of xxHash print it.
BlockHash to_block_hash(XXH128_hash_t value) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, value);
  BlockHash hash;
  std::memcpy(hash.bytes.data(), canonical.digest, hash.bytes.size());
  return hash;
}

uint32_t field_length(size_t bytes) {
  EMBER_CHECK(bytes <= UINT32_MAX, "a hashed field is longer than its frame can say");
  return static_cast<uint32_t>(bytes);
}

void append_field(std::string& out, Field field, std::string_view bytes) {
  append_value(out, field);
  append_value(out, field_length(bytes.size()));
  out.append(bytes);
}

// Writes a frame's head and returns the place of its bytes.
char* put_frame(char* to, Field field, size_t bytes) {
  const uint32_t length = field_length(bytes);
  std::memcpy(to, &field, sizeof field);
  std::memcpy(to + sizeof field, &length, sizeof length);
  return to + kFrameBytes;
}

}  // namespace

std::string BlockHash::hex() const { return to_hex(as_bytes(view())); }

BlockHasher::BlockHasher(const HashSecret& secret, const NamespaceHash& name_space,
                         std::string_view scope)
    : secret_(secret) {
  append_field(prefix_, Field::kPurpose, kPurpose);
  append_field(prefix_, Field::kNamespace, name_space.view());
  append_field(prefix_, Field::kScope, scope);
  root_ = to_block_hash(
      XXH3_128bits_withSecret(prefix_.data(), prefix_.size(), secret_.data(), secret_.size()));
}

BlockHash BlockHasher::next(const BlockHash& parent, TokenSpan tokens) const {
  EMBER_CHECK(!tokens.empty(), "a block to hash has no tokens");
  constexpr size_t kHeadBytes = kFrameBytes + sizeof(BlockHash) + kFrameBytes;
  std::array<char, kHeadBytes> head;
  char* at = put_frame(head.data(), Field::kParent, sizeof(BlockHash));
  std::memcpy(at, parent.bytes.data(), sizeof(BlockHash));
  put_frame(at + sizeof(BlockHash), Field::kTokens, tokens.size_bytes());

  // In one piece where it is short, as blocks mostly are: a state costs more than the copy.
  std::array<char, kShortBytes> whole;
  const size_t bytes = prefix_.size() + head.size() + tokens.size_bytes();
  if (bytes <= whole.size()) {
    char* end = std::copy(prefix_.begin(), prefix_.end(), whole.begin());
    end = std::copy(head.begin(), head.end(), end);
    std::memcpy(end, tokens.data(), tokens.size_bytes());
    return to_block_hash(
        XXH3_128bits_withSecret(whole.data(), bytes, secret_.data(), secret_.size()));
  }
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_128bits_reset_withSecret(&state, secret_.data(), secret_.size());
  XXH3_128bits_update(&state, prefix_.data(), prefix_.size());
  XXH3_128bits_update(&state, head.data(), head.size());
  XXH3_128bits_update(&state, tokens.data(), tokens.size_bytes());
  return to_block_hash(XXH3_128bits_digest(&state));
}

uint64_t checksum64(ConstBytes bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

BlockHash digest128(ConstBytes bytes) {
  return to_block_hash(XXH3_128bits(bytes.data(), bytes.size()));
}

}  // namespace ember
