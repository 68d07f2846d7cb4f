// Seal: AES-256-GCM, derived keys and random bytes, by OpenSSL, which is known to seal.cc alone.
//
// Journey    vault -> [seal] -> OpenSSL
// Owns       the memory of secret keys: left out of core dumps, zeroed when a key ends
// Invariant  a key's bytes are copied into no string, no message and no log
// Threads    any
// Not here   which nonce (store/disk/vault.h); whoever seals twice with one nonce has lost
//
// A SealingKey expands its key in OpenSSL's heap, which OpenSSL zeroes when the SealingKey ends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace ember {

inline constexpr size_t kSecretKeyBytes = 32;
inline constexpr size_t kNonceBytes = 12;
inline constexpr size_t kTagBytes = 16;
using Nonce = std::array<unsigned char, kNonceBytes>;

// Zeroes memory in a way that no compiler leaves out.
void wipe(void* bytes, size_t size);
// Equal or not, in a time that depends on the size alone.
bool equal_in_constant_time(std::string_view a, std::string_view b);
// From the kernel's generator; aborts where there is none.
void fill_random(void* bytes, size_t size);

class SecretKey {
 public:
  SecretKey();  // zeros
  ~SecretKey();
  SecretKey(SecretKey&& other) noexcept;
  SecretKey& operator=(SecretKey&& other) noexcept;

  static SecretKey random();
  // HMAC-SHA-256 of `label` and `salt`: HKDF's expansion, for a key that is uniform already.
  SecretKey derive(std::string_view label, std::string_view salt) const;

  std::span<unsigned char, kSecretKeyBytes> bytes() {
    return std::span<unsigned char, kSecretKeyBytes>(slot_, kSecretKeyBytes);
  }
  std::string_view view() const {
    return {reinterpret_cast<const char*>(slot_), kSecretKeyBytes};
  }

 private:
  unsigned char* slot_;
};

class SealingKey {
 public:
  explicit SealingKey(SecretKey key);
  ~SealingKey();
  SealingKey(const SealingKey&) = delete;
  SealingKey& operator=(const SealingKey&) = delete;

  // Appends the sealed form of `plain` and its tag to `out`. `context` is authenticated too.
  void seal(const Nonce& nonce, std::string_view context, std::string_view plain,
            std::string& out) const;
  // False, and `plain` empty, when a bit of anything differs.
  bool open(const Nonce& nonce, std::string_view context, std::string_view sealed,
            std::string& plain) const;

 private:
  struct Contexts;
  std::unique_ptr<Contexts> contexts_;
};

}  // namespace ember
