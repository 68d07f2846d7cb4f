// Codec candidates: planes of bytes and of exponents through zstd, three bits with escapes, ours.
#define ZSTD_STATIC_LINKING_ONLY
#include "bench/codec_candidates.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "store/codec/channel_planes.h"

namespace ember {
namespace {

constexpr int kHuffmanOnly = 0;  // as a "level"

ZSTD_CCtx* encoder(int level) {
  static ZSTD_CCtx* context = ZSTD_createCCtx();
  EMBER_CHECK(context != nullptr, "no memory for a zstd encoder");
  ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
  const auto set = [](ZSTD_cParameter parameter, int value) {
    EMBER_CHECK(ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value)) == 0,
                "this zstd does not know a parameter");
  };
  set(ZSTD_c_compressionLevel, level == kHuffmanOnly ? 1 : level);
  if (level != kHuffmanOnly) return context;
  // No match of exponents is worth finding: a fast strategy that skips ahead as far as it may.
  set(ZSTD_c_strategy, ZSTD_fast);
  set(ZSTD_c_targetLength, ZSTD_TARGETLENGTH_MAX);
  set(ZSTD_c_hashLog, 6);
  set(ZSTD_c_minMatch, 7);
  set(ZSTD_c_literalCompressionMode, ZSTD_ps_enable);
  return context;
}

void append_frame(std::string& out, int level, const void* from, size_t size) {
  const size_t at = out.size();
  out.resize(at + ZSTD_compressBound(size));
  const size_t length =
      ZSTD_compress2(encoder(level), out.data() + at, out.size() - at, from, size);
  EMBER_CHECK(ZSTD_isError(length) == 0, "zstd cannot code a plane");
  out.resize(at + length);
}

bool read_frame(std::string_view frame, void* to, size_t size) {
  static ZSTD_DCtx* context = ZSTD_createDCtx();
  return ZSTD_decompressDCtx(context, to, size, frame.data(), frame.size()) == size;
}

CodecCandidate stored() {
  return {"stored", true,
          [](const GroupShape&, ConstBytes raw) {
            return std::string(reinterpret_cast<const char*>(raw.data()), raw.size());
          },
          [](const GroupShape&, std::string_view payload, Bytes raw) {
            std::memcpy(raw.data(), payload.data(), raw.size());
            return payload.size() == raw.size();
          }};
}

CodecCandidate whole_bytes(const std::string& name, int level) {
  return {name, true,
          [level](const GroupShape&, ConstBytes raw) {
            std::string out;
            append_frame(out, level, raw.data(), raw.size());
            return out;
          },
          [](const GroupShape&, std::string_view payload, Bytes raw) {
            return read_frame(payload, raw.data(), raw.size());
          }};
}

// One plane as it is, the other one as a frame behind it. `first_bit` 8: bytes; 7: exponents.
template <int first_bit>
void split(ConstBytes raw, uint8_t* coded, uint8_t* kept) {
  for (size_t i = 0; i < raw.size() / 2; ++i) {
    const auto bits = load_unaligned<uint16_t>(raw.data() + 2 * i);
    coded[i] = static_cast<uint8_t>(bits >> first_bit);
    kept[i] = first_bit == 8 ? static_cast<uint8_t>(bits) : bf16_rest(bits);
  }
}

template <int first_bit>
void merge(const uint8_t* coded, const uint8_t* kept, Bytes raw) {
  for (size_t i = 0; i < raw.size() / 2; ++i) {
    const auto bits = first_bit == 8 ? static_cast<uint16_t>(coded[i] << 8 | kept[i])
                                     : bf16_bits(coded[i], kept[i]);
    std::memcpy(raw.data() + 2 * i, &bits, sizeof bits);
  }
}

template <int first_bit>
CodecCandidate two_planes(const std::string& name, int level) {
  return {name, false,
          [level](const GroupShape&, ConstBytes raw) {
            const size_t values = raw.size() / 2;
            std::vector<uint8_t> coded(values);
            std::string out(values, '\0');
            split<first_bit>(raw, coded.data(), reinterpret_cast<uint8_t*>(out.data()));
            append_frame(out, level, coded.data(), values);
            return out;
          },
          [](const GroupShape&, std::string_view payload, Bytes raw) {
            const size_t values = raw.size() / 2;
            std::vector<uint8_t> coded(values);
            if (!read_frame(payload.substr(values), coded.data(), values)) return false;
            merge<first_bit>(coded.data(), reinterpret_cast<const uint8_t*>(payload.data()), raw);
            return true;
          }};
}

// The largest exponent of each channel of each layer.
std::vector<uint8_t> channel_tops(const GroupShape& shape, const std::vector<uint8_t>& exponents) {
  const size_t layer_values = size_t{shape.row_values} * shape.tokens;
  std::vector<uint8_t> tops(exponents.size() / shape.tokens);
  for (size_t i = 0; i < exponents.size(); i += shape.row_values) {
    uint8_t* top = tops.data() + i / layer_values * shape.row_values;
    for (size_t c = 0; c < shape.row_values; ++c) top[c] = std::max(top[c], exponents[i + c]);
  }
  return tops;
}

// x becomes top - x, in place: the reverse of itself.
void subtract_from_tops(const GroupShape& shape, const uint8_t* tops, std::vector<uint8_t>& x) {
  const size_t layer_values = size_t{shape.row_values} * shape.tokens;
  for (size_t i = 0; i < x.size(); i += shape.row_values) {
    const uint8_t* top = tops + i / layer_values * shape.row_values;
    for (size_t c = 0; c < shape.row_values; ++c) {
      x[i + c] = static_cast<uint8_t>(top[c] - x[i + c]);
    }
  }
}

// Payload: sign and mantissa, tops, then what `append` makes of the distances below the tops.
template <typename Append, typename Read>
CodecCandidate below_tops(const std::string& name, Append append, Read read) {
  return {name, false,
          [append](const GroupShape& shape, ConstBytes raw) {
            const size_t values = raw.size() / 2;
            std::vector<uint8_t> distances(values);
            std::string out(values, '\0');
            split<7>(raw, distances.data(), reinterpret_cast<uint8_t*>(out.data()));
            const std::vector<uint8_t> tops = channel_tops(shape, distances);
            subtract_from_tops(shape, tops.data(), distances);
            out.append(tops.begin(), tops.end());
            append(out, distances);
            return out;
          },
          [read](const GroupShape& shape, std::string_view payload, Bytes raw) {
            const size_t values = raw.size() / 2;
            const auto* rest = reinterpret_cast<const uint8_t*>(payload.data());
            const uint8_t* tops = rest + values;
            std::vector<uint8_t> distances(values);
            if (!read(payload.substr(values + values / shape.tokens), distances)) return false;
            subtract_from_tops(shape, tops, distances);
            merge<7>(distances.data(), rest, raw);
            return true;
          }};
}

// Three bits a value, eight values in three bytes; 7 says that the distance follows as a byte
// behind them all.
void append_three_bits(std::string& out, const std::vector<uint8_t>& distances) {
  std::string escapes;
  for (size_t i = 0; i < distances.size(); i += 8) {
    uint32_t word = 0;
    for (size_t j = 0; j < 8 && i + j < distances.size(); ++j) {
      const uint8_t distance = distances[i + j];
      word |= uint32_t{std::min<uint8_t>(distance, 7)} << (3 * j);
      if (distance >= 7) escapes.push_back(static_cast<char>(distance));
    }
    out.append(reinterpret_cast<const char*>(&word), 3);
  }
  out += escapes;
}

bool read_three_bits(std::string_view payload, std::vector<uint8_t>& distances) {
  size_t escape = (distances.size() + 7) / 8 * 3;
  for (size_t i = 0; i < distances.size(); i += 8) {
    uint32_t word = 0;
    std::memcpy(&word, payload.data() + i / 8 * 3, 3);
    for (size_t j = 0; j < 8 && i + j < distances.size(); ++j) {
      auto distance = static_cast<uint8_t>(word >> (3 * j) & 7);
      if (distance == 7) distance = static_cast<uint8_t>(payload[escape++]);
      distances[i + j] = distance;
    }
  }
  return escape == payload.size();
}

CodecCandidate ours(const std::string& name, const RowCode& code) {
  return {name, false,
          [&code](const GroupShape& shape, ConstBytes raw) {
            std::string payload =
                encode_channel_planes(code, {shape.row_values, shape.tokens}, raw);
            EMBER_CHECK(!payload.empty(), "a sample that does not shrink");
            return payload;
          },
          [&code](const GroupShape&, std::string_view payload, Bytes raw) {
            return decode_channel_planes(code, payload, raw).ok();
          }};
}

}  // namespace

std::vector<CodecCandidate> codec_candidates() {
  std::vector<CodecCandidate> all = {
      stored(),
      whole_bytes("zstd 1", 1),
      whole_bytes("zstd 3", 3),
      whole_bytes("Huffman of all bytes", kHuffmanOnly),
      two_planes<8>("byte planes, high one zstd 1", 1),
      two_planes<8>("byte planes, high one zstd 3", 3),
      two_planes<8>("byte planes, high one Huffman", kHuffmanOnly),
      two_planes<7>("exponent plane, zstd 1", 1),
      two_planes<7>("exponent plane, Huffman", kHuffmanOnly),
      below_tops(
          "exponent below channel's largest, Huffman",
          [](std::string& out, const std::vector<uint8_t>& x) {
            append_frame(out, kHuffmanOnly, x.data(), x.size());
          },
          [](std::string_view payload, std::vector<uint8_t>& x) {
            return read_frame(payload, x.data(), x.size());
          }),
      below_tops("exponent below channel's largest, 3 bits and escapes", append_three_bits,
                 read_three_bits),
      ours("channel planes, plain", scalar_row_code())};
  if (avx2_row_code() != nullptr) all.push_back(ours("**channel planes**, AVX2", *avx2_row_code()));
  return all;
}

}  // namespace ember
