// Text file: a whole file in memory, unpacked if it is a gzip.
//
// Journey    none; reads tokenizer.json and its companions
// Invariant  never more than kMaxTextFileBytes, before or after unpacking
// Not here   what the text means (tokenizer_file.h, tokenizer_config.h)
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace ember {

inline constexpr size_t kMaxTextFileBytes = size_t{256} << 20;

// The bytes of `path`; a gzip (told by its first two bytes) comes unpacked, all members.
// Errors: kIo when it cannot be read, kCorruption when the gzip is damaged or cut, kCapacity when
// it is larger than kMaxTextFileBytes.
Result<std::string> read_text_file(const std::string& path);

// The same of bytes that are here already; `name` stands in errors.
Result<std::string> unpack_text(std::string bytes, const std::string& name);

// The bytes as a gzip of one member, at zlib's strongest level. Errors: kCapacity (no memory).
Result<std::string> gzip_text(const std::string& bytes);

}  // namespace ember
