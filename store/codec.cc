// Codec: the choice of the shortest form, and the way back by number.
#include "store/codec.h"

#include <cstring>

#include "store/codec/channel_planes.h"

namespace ember {
namespace {

// Of fewer tokens a channel has too few for a row of its own: rows of 64 values in their order, as
// if they were one channel, may be shorter. Both are tried.
constexpr uint32_t kFewTokens = 24;

std::string encode_bf16(const GroupShape& shape, ConstBytes raw) {
  const PlaneShape by_channel = {shape.row_values, shape.tokens};
  if (!fits(by_channel, raw.size())) return {};
  std::string payload = encode_channel_planes(row_code(), by_channel, raw);
  if (shape.tokens >= kFewTokens) return payload;
  const PlaneShape in_order = {1, static_cast<uint32_t>(raw.size() / 2)};
  std::string other = encode_channel_planes(row_code(), in_order, raw);
  const bool shorter = !other.empty() && (payload.empty() || other.size() < payload.size());
  return shorter ? other : payload;
}

Status decode_stored(std::string_view payload, Bytes raw) {
  if (payload.size() != raw.size()) {
    return {ErrorCode::kCorruption, "coded group: found " + std::to_string(payload.size()) +
                                        " stored bytes, expected " + std::to_string(raw.size())};
  }
  if (!raw.empty()) std::memcpy(raw.data(), payload.data(), raw.size());
  return {};
}

}  // namespace

EncodedGroup encode_group(const GroupShape& shape, ConstBytes raw) {
  if (shape.dtype == DType::kBf16) {
    std::string payload = encode_bf16(shape, raw);
    if (!payload.empty()) return {CodecId::kChannelPlanes, std::move(payload)};
  }
  return {CodecId::kStored, std::string(reinterpret_cast<const char*>(raw.data()), raw.size())};
}

Status decode_group(CodecId codec, std::string_view payload, Bytes raw) {
  switch (codec) {
    case CodecId::kStored: return decode_stored(payload, raw);
    case CodecId::kChannelPlanes: return decode_channel_planes(row_code(), payload, raw);
  }
  return {ErrorCode::kUnsupported, "coded group: codec " +
                                       std::to_string(static_cast<unsigned>(codec)) +
                                       ", known are 0 (stored) and 2 (channel planes)"};
}

}  // namespace ember
