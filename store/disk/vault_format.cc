// Vault format: reading and writing KEYS and the heads of sealed values.
#include "store/disk/vault_format.h"

#include "base/bytes.h"
#include "prefix_index/block_hash.h"

namespace ember {
namespace {

constexpr uint32_t kVaultMagic = 0x56424d45;  // "EMBV"
constexpr std::string_view kSealMagic = "EMS";
constexpr size_t kLeastEntryBytes = 4 + 4 + kNonceBytes + kTagBytes;

template <size_t N>
void append_array(std::string& out, const std::array<char, N>& bytes) {
  out.append(bytes.data(), bytes.size());
}

}  // namespace

std::string encode_keys(const KeysFile& keys) {
  std::string bytes;
  append_value(bytes, kVaultMagic);
  append_value(bytes, kVaultVersion);
  append_array(bytes, keys.salt);
  append_array(bytes, keys.check);
  append_value(bytes, keys.next_id);
  append_value(bytes, static_cast<uint32_t>(keys.entries.size()));
  for (const WrappedKey& entry : keys.entries) {
    append_value(bytes, entry.id);
    append_value(bytes, static_cast<uint32_t>(kNonceBytes + entry.sealed.size()));
    append_value(bytes, entry.nonce);
    bytes.append(entry.sealed);
  }
  append_value(bytes, checksum64(as_bytes(bytes)));
  return bytes;
}

Result<KeysFile> decode_keys(const std::string& path, std::string_view bytes) {
  const Error damaged{ErrorCode::kCorruption, path + ": damaged: its checksum does not agree"};
  if (bytes.size() < 16 || bytes.size() > kMostKeysBytes) return damaged;
  const std::string_view body = bytes.substr(0, bytes.size() - 8);
  if (checksum64(as_bytes(body)) != load_unaligned<uint64_t>(body.data() + body.size())) {
    return damaged;
  }
  ByteReader reader(body);
  if (reader.read<uint32_t>() != kVaultMagic) return damaged;
  const auto version = reader.read<uint32_t>();
  if (version != kVaultVersion) {
    return Error{ErrorCode::kUnsupported, path + ": it has version " + std::to_string(version) +
                                              ", this program reads " +
                                              std::to_string(kVaultVersion)};
  }
  KeysFile keys;
  keys.salt = reader.read<std::array<char, 32>>();
  keys.check = reader.read<std::array<char, 16>>();
  keys.next_id = reader.read<uint32_t>();
  const auto count = reader.read<uint32_t>();
  if (count > reader.remaining() / kLeastEntryBytes) return damaged;
  for (uint32_t i = 0; i < count && !reader.failed(); ++i) {
    WrappedKey entry;
    entry.id = reader.read<uint32_t>();
    ByteReader inside(reader.read_bytes(reader.read<uint32_t>()));
    entry.nonce = inside.read<Nonce>();
    entry.sealed = std::string(inside.read_bytes(inside.remaining()));
    if (inside.failed() || entry.id >= keys.next_id) return damaged;
    keys.entries.push_back(std::move(entry));
  }
  if (!reader.finished()) return damaged;
  return keys;
}

std::string encode_seal_head(const SealHead& head) {
  std::string bytes(kSealMagic);
  append_value(bytes, kSealVersion);
  append_value(bytes, head.key_id);
  append_array(bytes, head.salt);
  append_value(bytes, head.nonce);
  return bytes;
}

Result<SealHead> decode_seal_head(std::string_view sealed) {
  if (sealed.size() < kValueSealBytes || !sealed.starts_with(kSealMagic)) {
    return Error{ErrorCode::kCorruption,
                 "sealed value: " + std::to_string(sealed.size()) + " bytes, not sealed by us"};
  }
  ByteReader reader(sealed.substr(kSealMagic.size(), kSealHeadBytes - kSealMagic.size()));
  const auto version = reader.read<uint8_t>();
  if (version != kSealVersion) {
    return Error{ErrorCode::kUnsupported, "sealed value: version " + std::to_string(version) +
                                              ", this program reads " +
                                              std::to_string(kSealVersion)};
  }
  SealHead head;
  head.key_id = reader.read<uint32_t>();
  head.salt = reader.read<SealSalt>();
  head.nonce = reader.read<Nonce>();
  return head;
}

}  // namespace ember
