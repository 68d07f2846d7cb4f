// Sealed value: a value that ends with the XXH3-64 of its key and of the bytes before it.
//
// Journey    disk_format, conversations_format -> [sealed_value] -> RocksDB
// Invariant  neither a changed byte nor a value under another key is believed
// Threads    any; pure
// Not here   block records, whose checksum does without the key: they name their hash themselves
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ember {

inline constexpr size_t kSealBytes = 8;

std::string sealed(std::string_view key, std::string body);
// The value without its seal; nothing when it does not agree.
std::optional<std::string_view> unsealed(std::string_view key, std::string_view value);

}  // namespace ember
