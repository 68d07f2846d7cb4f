// Bytes: little-endian numbers in byte strings, a bounded reader, hexadecimal, human sizes.
//
// Journey    none; used by every stored format
// Invariant  ByteReader never reads past its end: after a short read it is failed and yields zeros
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace ember {

static_assert(std::endian::native == std::endian::little, "stored formats are little-endian");

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

inline ConstBytes as_bytes(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

// Reads a T from unaligned memory.
template <typename T>
requires std::is_trivially_copyable_v<T> T load_unaligned(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Appends the little-endian bytes of a trivially copyable value to `out`.
template <typename T>
requires std::is_trivially_copyable_v<T>
void append_value(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  requires std::is_trivially_copyable_v<T> T read() {
    T value{};
    std::string_view bytes = read_bytes(sizeof value);
    if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  // The next n bytes, or an empty view (and failed()) when fewer are left.
  std::string_view read_bytes(size_t n) {
    if (n > rest_.size()) {
      failed_ = true;
      rest_ = {};
      return {};
    }
    std::string_view bytes = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return bytes;
  }
  size_t remaining() const { return rest_.size(); }
  bool failed() const { return failed_; }
  // True when everything was read and nothing is left over.
  bool finished() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

// Lower-case hexadecimal, two digits a byte.
std::string to_hex(ConstBytes bytes);
// The reverse; nothing if the length is odd or a digit is foreign.
std::optional<std::string> from_hex(std::string_view text);

// "1.50 MiB", "312 B".
std::string human_bytes(uint64_t bytes);
// Parses "4096", "64MiB", "20GiB", "1.5GB" (decimal and binary suffixes); nothing if malformed.
std::optional<uint64_t> parse_bytes(std::string_view text);

}  // namespace ember
