// Codec: lossless coding of a layer group. Exponents are entropy-coded, the rest is stored.
//
// Journey    host_tier -> [codec] -> disk_tier, and back
// Invariant  decode(encode(x)) == x, bit for bit; a payload is never longer than raw + its frame;
//            no length in a payload is trusted before it is bounded by the caller's raw size
// Threads    any; scratch memory is the thread's own
// Not here   checksums (store/record.h): a decoder says whether bytes are well formed, not right.
//            How exponents become bits, and why so: store/codec/, docs/codec.md
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/result.h"

namespace ember {

// Stored in records; never renumbered, never used again for another form.
enum class CodecId : uint8_t {
  kStored = 0,         // the raw bytes
  kChannelPlanes = 2,  // bf16: store/codec/channel_planes.h
};
// A stored payload has no frame at all; a coded one is shorter than raw. Readers allow for this
// much more.
inline constexpr size_t kCodecFrameBytes = 16;

// A group's bytes: whole layers, each [tokens][row_values] of dtype.
struct GroupShape {
  DType dtype = DType::kBf16;
  uint32_t row_values = 0;
  uint32_t tokens = 0;
};

struct EncodedGroup {
  CodecId codec = CodecId::kStored;
  std::string payload;
};
// Codes `raw` in the shortest form that we have. A shape that `raw` does not fit, or another dtype
// than bf16, is stored.
// Cost: about a tenth of memcpy's speed for bf16 rows (docs/codec.md).
EncodedGroup encode_group(const GroupShape& shape, ConstBytes raw);
// Writes exactly raw.size() bytes. Errors: kCorruption when the payload does not decode to that
// many bytes; kUnsupported for an unknown codec.
Status decode_group(CodecId codec, std::string_view payload, Bytes raw);

}  // namespace ember
