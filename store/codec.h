// Codec: lossless coding of a layer group. Exponents are entropy-coded, the rest is stored.
//
// Journey    host_tier -> [codec] -> disk_tier, and back
// Invariant  decode(encode(x)) == x, bit for bit; a payload is never longer than raw + kFrameBytes;
//            no length in a payload is trusted before it is bounded by the caller's raw size
// Threads    any; no state
// Not here   checksums (store/record.h): a decoder says whether bytes are well formed, not right
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/result.h"

namespace ember {

// Stored in records; never renumbered.
enum class CodecId : uint8_t {
  kStored = 0,         // the raw bytes
  kExponentPlane = 1,  // bf16: exponents as one Huffman-only zstd frame, sign and mantissa stored
};
inline constexpr size_t kCodecFrameBytes = 16;

// The codec that suits values of this dtype.
CodecId preferred_codec(DType dtype);

struct EncodedGroup {
  CodecId codec = CodecId::kStored;
  std::string payload;
};
// Codes `raw` with `codec`, or stores it where that is shorter.
EncodedGroup encode_group(CodecId codec, ConstBytes raw);
// Writes exactly raw.size() bytes. Errors: kCorruption when the payload does not decode to that
// many bytes; kUnsupported for an unknown codec.
Status decode_group(CodecId codec, std::string_view payload, Bytes raw);

}  // namespace ember
