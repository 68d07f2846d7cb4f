// Codec: splits bf16 into planes, codes the exponents with zstd in its Huffman-only form.
//
// kExponentPlane's payload: u32 length f of the frame; sign and mantissa, one byte a value; the
// frame, f bytes. zstd's match finder finds only false matches in exponents: it makes them longer
// and costs three times the time, hence a fast strategy that skips ahead as far as it may.
#define ZSTD_STATIC_LINKING_ONLY
#include "store/codec.h"

#include <zstd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"

namespace ember {
namespace {

constexpr size_t kLengthBytes = 4;
static_assert(kLengthBytes <= kCodecFrameBytes);

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

void set_parameter(ZSTD_CCtx* context, ZSTD_cParameter parameter, int value) {
  EMBER_CHECK(ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value)) == 0,
              "this zstd does not know a parameter of the Huffman-only form");
}

// One context a thread, made at first use: making one costs more than coding a small group.
ZSTD_CCtx* encoder() {
  thread_local std::unique_ptr<ZSTD_CCtx, FreeContext> context = [] {
    std::unique_ptr<ZSTD_CCtx, FreeContext> made(ZSTD_createCCtx());
    EMBER_CHECK(made != nullptr, "no memory for a zstd encoder");
    set_parameter(made.get(), ZSTD_c_compressionLevel, 1);
    set_parameter(made.get(), ZSTD_c_strategy, ZSTD_fast);
    set_parameter(made.get(), ZSTD_c_targetLength, ZSTD_TARGETLENGTH_MAX);
    set_parameter(made.get(), ZSTD_c_hashLog, 6);
    set_parameter(made.get(), ZSTD_c_minMatch, 7);
    set_parameter(made.get(), ZSTD_c_literalCompressionMode, ZSTD_ps_enable);
    return made;
  }();
  return context.get();
}

ZSTD_DCtx* decoder() {
  thread_local std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  EMBER_CHECK(context != nullptr, "no memory for a zstd decoder");
  return context.get();
}

std::vector<uint8_t>& exponent_scratch(size_t values) {
  thread_local std::vector<uint8_t> scratch;
  if (scratch.size() < values) scratch.resize(values);
  return scratch;
}

// bf16 is s eeeeeeee mmmmmmm. Plain loops over bytes, so that any compiler vectorises them.
void split_planes(const std::byte* raw, size_t values, uint8_t* exponents, uint8_t* rest) {
  for (size_t i = 0; i < values; ++i) {
    uint16_t bits;
    std::memcpy(&bits, raw + 2 * i, 2);
    exponents[i] = static_cast<uint8_t>(bits >> 7);
    rest[i] = static_cast<uint8_t>(((bits >> 8) & 0x80) | (bits & 0x7f));
  }
}

void merge_planes(const uint8_t* exponents, const uint8_t* rest, size_t values, std::byte* raw) {
  for (size_t i = 0; i < values; ++i) {
    auto bits = static_cast<uint16_t>(((rest[i] & 0x80) << 8) | (exponents[i] << 7) |
                                      (rest[i] & 0x7f));
    std::memcpy(raw + 2 * i, &bits, 2);
  }
}

// Empty when the coded form would not be shorter than `raw`.
std::string encode_exponent_plane(ConstBytes raw) {
  size_t values = raw.size() / 2;
  if (raw.size() % 2 != 0 || values <= kLengthBytes || values > UINT32_MAX) return {};
  std::vector<uint8_t>& exponents = exponent_scratch(values);
  std::string payload(raw.size() - 1, '\0');
  auto* rest = reinterpret_cast<uint8_t*>(payload.data()) + kLengthBytes;
  split_planes(raw.data(), values, exponents.data(), rest);
  size_t room = payload.size() - kLengthBytes - values;
  size_t length = ZSTD_compress2(encoder(), rest + values, room, exponents.data(), values);
  if (ZSTD_isError(length) != 0) return {};
  auto stored_length = static_cast<uint32_t>(length);
  std::memcpy(payload.data(), &stored_length, sizeof stored_length);
  payload.resize(kLengthBytes + values + length);
  return payload;
}

Status damaged(size_t found, size_t expected, const char* what) {
  return {ErrorCode::kCorruption, std::string("coded group: ") + what + " " +
                                      std::to_string(found) + ", expected " +
                                      std::to_string(expected)};
}

Status decode_stored(std::string_view payload, Bytes raw) {
  if (payload.size() != raw.size()) return damaged(payload.size(), raw.size(), "stored bytes");
  if (!raw.empty()) std::memcpy(raw.data(), payload.data(), raw.size());
  return {};
}

Status decode_exponent_plane(std::string_view payload, Bytes raw) {
  size_t values = raw.size() / 2;
  if (raw.size() % 2 != 0) return damaged(raw.size(), raw.size() + 1, "raw bytes of a bf16 group");
  if (payload.size() < kLengthBytes + values) {
    return damaged(payload.size(), kLengthBytes + values, "bytes");
  }
  size_t length = load_unaligned<uint32_t>(payload.data());
  size_t rest_length = payload.size() - kLengthBytes - values;
  if (length != rest_length) return damaged(length, rest_length, "length of the exponent frame");
  const auto* rest = reinterpret_cast<const uint8_t*>(payload.data()) + kLengthBytes;
  std::vector<uint8_t>& exponents = exponent_scratch(values);
  size_t decoded = ZSTD_decompressDCtx(decoder(), exponents.data(), values, rest + values, length);
  if (ZSTD_isError(decoded) != 0) {
    return {ErrorCode::kCorruption,
            std::string("coded group: exponent frame: ") + ZSTD_getErrorName(decoded)};
  }
  if (decoded != values) return damaged(decoded, values, "exponents");
  merge_planes(exponents.data(), rest, values, raw.data());
  return {};
}

}  // namespace

CodecId preferred_codec(DType dtype) {
  return dtype == DType::kBf16 ? CodecId::kExponentPlane : CodecId::kStored;
}

EncodedGroup encode_group(CodecId codec, ConstBytes raw) {
  if (codec == CodecId::kExponentPlane) {
    std::string payload = encode_exponent_plane(raw);
    if (!payload.empty()) return {CodecId::kExponentPlane, std::move(payload)};
  }
  return {CodecId::kStored, std::string(reinterpret_cast<const char*>(raw.data()), raw.size())};
}

Status decode_group(CodecId codec, std::string_view payload, Bytes raw) {
  switch (codec) {
    case CodecId::kStored: return decode_stored(payload, raw);
    case CodecId::kExponentPlane: return decode_exponent_plane(payload, raw);
  }
  return {ErrorCode::kUnsupported, "coded group: codec " +
                                       std::to_string(static_cast<unsigned>(codec)) +
                                       ", known are 0 (stored) and 1 (exponent plane)"};
}

}  // namespace ember
