// Framed text: a text behind its length in four bytes, as stored formats and frames have it.
//
// Journey    none; used by stored formats and the holder's frames
// Invariant  reading never goes past the reader's end
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace ember {

inline void append_text(std::string& out, std::string_view text) {
  append_value(out, static_cast<uint32_t>(text.size()));
  out += text;
}

// Empty, and reader.failed(), where fewer bytes are left than it should have.
inline std::string read_text(ByteReader& reader) {
  return std::string(reader.read_bytes(reader.read<uint32_t>()));
}

}  // namespace ember
