// Disk format: building and reading the disk tier's keys and small rows.
#include "store/disk/disk_format.h"

#include "base/bytes.h"
#include "store/disk/sealed_value.h"

namespace ember {
namespace {

constexpr size_t kHashKeyBytes = 1 + sizeof(BlockHash);
constexpr size_t kEpochKeyBytes = 1 + 4;

std::string hash_key(MetaKind kind, const BlockHash& hash) {
  std::string key(1, static_cast<char>(kind));
  key.append(hash.view());
  return key;
}

}  // namespace

std::string big_endian_32(uint32_t value) {
  uint32_t swapped = __builtin_bswap32(value);
  std::string out;
  append_value(out, swapped);
  return out;
}

std::string data_key(uint32_t epoch, const BlockHash& hash, uint32_t group) {
  std::string key = big_endian_32(epoch);
  key.append(hash.view());
  key.push_back(static_cast<char>(group >> 8));
  key.push_back(static_cast<char>(group & 0xff));
  return key;
}

std::string number_key(MetaKind kind, uint32_t number) {
  std::string key;
  key.push_back(static_cast<char>(kind));
  key.append(big_endian_32(number));
  return key;
}

std::string block_key(const BlockHash& hash) { return hash_key(MetaKind::kBlock, hash); }

std::string touch_key(const BlockHash& hash) { return hash_key(MetaKind::kTouch, hash); }

std::string epoch_key(uint32_t epoch) {
  return number_key(MetaKind::kEpoch, epoch);
}

std::optional<BlockHash> hash_of_key(std::string_view key) {
  if (key.size() != kHashKeyBytes) return std::nullopt;
  return load_unaligned<BlockHash>(key.data() + 1);
}

std::optional<uint32_t> epoch_of_key(std::string_view key) {
  if (key.size() != kEpochKeyBytes) return std::nullopt;
  uint32_t epoch = __builtin_bswap32(load_unaligned<uint32_t>(key.data() + 1));
  if (epoch == 0 || epoch > kMaxEpoch) return std::nullopt;
  return epoch;
}

std::string encode_touch(std::string_view key, const TouchRecord& touch) {
  std::string body;
  append_value(body, touch.last_use_unix_us);
  append_value(body, touch.hits);
  return sealed(key, std::move(body));
}

std::optional<TouchRecord> decode_touch(std::string_view key, std::string_view value) {
  const std::optional<std::string_view> body = unsealed(key, value);
  if (!body) return std::nullopt;
  ByteReader reader(*body);
  TouchRecord touch;
  touch.last_use_unix_us = reader.read<int64_t>();
  touch.hits = reader.read<uint32_t>();
  if (!reader.finished()) return std::nullopt;
  return touch;
}

std::string encode_epoch(std::string_view key, const EpochRow& row) {
  std::string body;
  append_value(body, row.bytes);
  append_value(body, row.live);
  append_value(body, row.files);
  append_value(body, static_cast<uint8_t>(row.rewritten ? 1 : 0));
  return sealed(key, std::move(body));
}

std::optional<EpochRow> decode_epoch(std::string_view key, std::string_view value) {
  const std::optional<std::string_view> body = unsealed(key, value);
  if (!body) return std::nullopt;
  ByteReader reader(*body);
  EpochRow row;
  row.bytes = reader.read<uint64_t>();
  row.live = reader.read<uint32_t>();
  row.files = reader.read<uint32_t>();
  row.rewritten = reader.read<uint8_t>() != 0;
  if (!reader.finished()) return std::nullopt;
  return row;
}

}  // namespace ember
