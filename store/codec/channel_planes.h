// Channel planes: the payload of a coded layer group of bf16 rows.
//
// Journey    codec -> [channel_planes] -> row_code
// Invariant  a payload says all that its decoding needs but the number of raw bytes; decoding reads
//            and writes within what it is given, whatever the payload holds
// Threads    any; scratch memory is the thread's own
// Not here   whether coding pays (store/codec.h)
//
// A group is a matrix: successive layers, each of T tokens, each of C values (channels). Exponents
// are turned so that a channel's tokens lie together, at most 64 a row: channels differ in size
// much more than tokens do, so a row has few exponents and its own code. Rows are in the order of
// layers, runs of 64 tokens, channels; there are R of them, and H = ceil(R / 64). Their heads
// (largest exponent, class) are bytes and are coded as rows themselves, by the same code.
//
//   payload               bytes
//     C                       4
//     T                       4
//     heads of head rows    4 H   largest byte of each of 2 H rows, then their classes
//     sign and mantissa   raw/2   a byte a value, in the order of the values
//     head bits                   largest exponents of the R rows, 64 to a row; then their classes;
//                                 whole bytes
//     row bits                    to the end of the payload; whole bytes
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "store/codec/row_code.h"

namespace ember {

struct PlaneShape {
  uint32_t channels = 0;
  uint32_t tokens = 0;
};

// Whether `raw_bytes` are whole layers of bf16 values of that shape.
bool fits(const PlaneShape& shape, size_t raw_bytes);

// `raw` must fit the shape. Empty where the payload would not be shorter than `raw`.
std::string encode_channel_planes(const RowCode& code, const PlaneShape& shape, ConstBytes raw);
// Writes exactly raw.size() bytes. Errors: kCorruption.
Status decode_channel_planes(const RowCode& code, std::string_view payload, Bytes raw);

}  // namespace ember
