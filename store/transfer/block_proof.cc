// Decoding with proof, and the values that cannot be.
#include "store/transfer/block_proof.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "store/cache/block_coder.h"
#include "store/codec.h"
#include "store/codec/channel_planes.h"
#include "store/transfer/transfer_format.h"

namespace ember {
namespace {

constexpr size_t kMostNameBytes = 256;
constexpr int64_t kMostUnixUs = int64_t{1} << 53;  // the year 2255

Error damage(const std::string& what) { return {ErrorCode::kCorruption, what}; }

Status check_ids(TokenSpan ids) {
  for (const TokenId id : ids) {
    if (id >= 0 && id <= kMostTokenId) continue;
    return damage("token id " + std::to_string(id) + " is in no vocabulary");
  }
  return {};
}

// A slot is poisoned with NaN before it is filled, so no row that was read back whole has one.
template <typename Bits>
bool has_nan(ConstBytes values, Bits exponent, Bits mantissa) {
  for (size_t at = 0; at + sizeof(Bits) <= values.size(); at += sizeof(Bits)) {
    const auto bits = load_unaligned<Bits>(values.data() + at);
    if ((bits & exponent) == exponent && (bits & mantissa) != 0) return true;
  }
  return false;
}

bool has_nan(const Stream& stream, ConstBytes values) {
  if (stream.kind != StreamKind::kMlaRow) return false;
  if (stream.dtype == DType::kBf16) return has_nan<uint16_t>(values, 0x7f80, 0x007f);
  if (stream.dtype == DType::kF32) return has_nan<uint32_t>(values, 0x7f800000, 0x007fffff);
  return false;
}

// A coded group says itself how its values are turned, and so how much memory the turning takes:
// only what our encoder says of such a layout is believed.
bool has_our_shape(std::string_view payload, const Stream& stream, size_t tokens,
                   uint32_t raw_bytes) {
  if (payload.size() < sizeof(PlaneShape)) return false;
  const auto shape = load_unaligned<PlaneShape>(payload.data());
  const bool by_channel = shape.channels == stream.row_values && shape.tokens == tokens;
  const bool in_order = shape.channels == 1 && shape.tokens == raw_bytes / 2;
  return by_channel || in_order;
}

Status prove_group(const GroupEntry& group, std::string_view payload, const Stream& stream,
                   size_t tokens) {
  // No codec of ours halves a group: what says so would only have us take memory for it.
  if (group.stored_bytes > group.raw_bytes ||
      uint64_t{group.stored_bytes} * 2 < uint64_t{group.raw_bytes}) {
    return damage("group of layer " + std::to_string(group.first_layer) + " says " +
                  std::to_string(group.stored_bytes) + " stored and " +
                  std::to_string(group.raw_bytes) + " raw bytes");
  }
  if (group.codec == CodecId::kChannelPlanes &&
      (stream.dtype != DType::kBf16 ||
       !has_our_shape(payload, stream, tokens, group.raw_bytes))) {
    return damage("group of layer " + std::to_string(group.first_layer) +
                  " is coded for another layout");
  }
  std::vector<std::byte> raw(group.raw_bytes);
  EMBER_TRY(decode_group(group.codec, payload, raw));
  if (checksum64(raw) != group.checksum) {
    return damage("group of layer " + std::to_string(group.first_layer) +
                  ": its checksum does not agree");
  }
  if (has_nan(stream, raw)) {
    return damage("group of layer " + std::to_string(group.first_layer) +
                  ": holds values that are no numbers");
  }
  return {};
}

}  // namespace

Status prove_block(const BlockRecord& record, std::span<const std::string_view> payloads,
                   const KvLayout& layout) {
  EMBER_TRY(check_record_shape(record, layout));
  EMBER_TRY(check_ids(record.tokens));
  for (size_t i = 0; i < payloads.size(); ++i) {
    EMBER_TRY(prove_group(record.groups[i], payloads[i], layout.stream(), record.tokens.size()));
  }
  return {};
}

Status prove_conversation(const Conversation& conversation) {
  const auto is_time = [](int64_t unix_us) { return unix_us >= 0 && unix_us <= kMostUnixUs; };
  if (conversation.template_name.size() > kMostNameBytes ||
      !is_time(conversation.created_unix_us) || !is_time(conversation.updated_unix_us)) {
    return damage("its head says what no conversation can be");
  }
  for (size_t i = 0; i < conversation.turns.size(); ++i) {
    const Turn& turn = conversation.turns[i];
    EMBER_TRY(check_ids(turn.prompt));
    EMBER_TRY(check_ids(turn.answer));
    const bool last = i + 1 == conversation.turns.size();
    const bool fits = std::isfinite(turn.temperature) && turn.temperature >= 0 &&
                      turn.finish_reason.size() <= kMostNameBytes &&
                      (last || turn.state == TurnState::kFinished) && !turn.prompt.empty();
    if (!fits) return damage("turn " + std::to_string(i) + " says what no turn can be");
  }
  return {};
}

}  // namespace ember
