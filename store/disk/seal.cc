// Seal: OpenSSL's EVP behind two small types, and the pages in which keys lie.
#include "store/disk/seal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"

namespace ember {
namespace {

// Slots for keys, in pages that no core dump holds and, where the limits allow, no swap.
class KeyPages {
 public:
  unsigned char* take() {
    MutexLock lock(mutex_);
    if (free_.empty()) add_pages();
    unsigned char* slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give_back(unsigned char* slot) {
    wipe(slot, kSecretKeyBytes);
    MutexLock lock(mutex_);
    free_.push_back(slot);
  }

 private:
  static constexpr size_t kPageBytes = 64u << 10;

  void add_pages() EMBER_REQUIRES(mutex_) {
    void* pages = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EMBER_CHECK(pages != MAP_FAILED, "no memory for keys");
    // Both are precautions: without them keys are as safe as other memory.
    static_cast<void>(::madvise(pages, kPageBytes, MADV_DONTDUMP));
    static_cast<void>(::mlock(pages, kPageBytes));
    auto* bytes = static_cast<unsigned char*>(pages);
    for (size_t at = 0; at + kSecretKeyBytes <= kPageBytes; at += kSecretKeyBytes) {
      free_.push_back(bytes + at);
    }
  }

  Mutex mutex_;
  std::vector<unsigned char*> free_ EMBER_GUARDED_BY(mutex_);
};

// Never destroyed: a key may end after the statics of other files.
KeyPages& key_pages() {
  static KeyPages* pages = new KeyPages;
  return *pages;
}

const unsigned char* unsigned_bytes(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

unsigned char* unsigned_bytes(std::string& bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

int checked_length(size_t size) {
  EMBER_CHECK(size <= static_cast<size_t>(std::numeric_limits<int>::max()),
              "a value to be sealed is shorter than 2 GiB");
  return static_cast<int>(size);
}

}  // namespace

void wipe(void* bytes, size_t size) { OPENSSL_cleanse(bytes, size); }

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void fill_random(void* bytes, size_t size) {
  auto* at = static_cast<unsigned char*>(bytes);
  while (size > 0) {
    const ssize_t got = ::getrandom(at, size, 0);
    if (got < 0) {
      EMBER_CHECK(errno == EINTR, "the kernel gives no random bytes");
      continue;
    }
    at += got;
    size -= static_cast<size_t>(got);
  }
}

SecretKey::SecretKey() : slot_(key_pages().take()) { std::memset(slot_, 0, kSecretKeyBytes); }

SecretKey::~SecretKey() {
  if (slot_ != nullptr) key_pages().give_back(slot_);
}

SecretKey::SecretKey(SecretKey&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}

SecretKey& SecretKey::operator=(SecretKey&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

SecretKey SecretKey::random() {
  SecretKey key;
  fill_random(key.slot_, kSecretKeyBytes);
  return key;
}

SecretKey SecretKey::derive(std::string_view label, std::string_view salt) const {
  std::string info(label);
  info.push_back('\0');
  info.append(salt);
  info.push_back('\1');
  SecretKey derived;
  unsigned int size = 0;
  const unsigned char* done =
      HMAC(EVP_sha256(), slot_, checked_length(kSecretKeyBytes), unsigned_bytes(info), info.size(),
           derived.slot_, &size);
  EMBER_CHECK(done != nullptr && size == kSecretKeyBytes, "OpenSSL has no HMAC-SHA-256");
  return derived;
}

// Contexts with the key expanded: what is lent to a call comes back for the next one.
struct SealingKey::Contexts {
  using Ready = std::vector<EVP_CIPHER_CTX*>;
  explicit Contexts(SecretKey secret) : key(std::move(secret)) {}
  // Freeing a context zeroes the expanded key in it.
  ~Contexts() {
    MutexLock lock(mutex);
    for (const Ready& list : ready) {
      for (EVP_CIPHER_CTX* context : list) EVP_CIPHER_CTX_free(context);
    }
  }

  EVP_CIPHER_CTX* take(int encrypt) {
    {
      MutexLock lock(mutex);
      Ready& list = ready[encrypt];
      if (!list.empty()) {
        EVP_CIPHER_CTX* context = list.back();
        list.pop_back();
        return context;
      }
    }
    EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
    const bool made =
        context != nullptr && EVP_CipherInit_ex(context, EVP_aes_256_gcm(), nullptr,
                                                unsigned_bytes(key.view()), nullptr, encrypt) == 1;
    EMBER_CHECK(made, "OpenSSL has no AES-256-GCM");
    return context;
  }
  void give_back(int encrypt, EVP_CIPHER_CTX* context) {
    MutexLock lock(mutex);
    ready[encrypt].push_back(context);
  }

  SecretKey key;
  Mutex mutex;
  Ready ready[2] EMBER_GUARDED_BY(mutex);  // decrypting, encrypting
};

SealingKey::SealingKey(SecretKey key) : contexts_(std::make_unique<Contexts>(std::move(key))) {}

SealingKey::~SealingKey() = default;

void SealingKey::seal(const Nonce& nonce, std::string_view context, std::string_view plain,
                      std::string& out) const {
  EVP_CIPHER_CTX* cipher = contexts_->take(1);
  const size_t begin = out.size();
  out.resize(begin + plain.size() + kTagBytes);
  unsigned char* to = unsigned_bytes(out) + begin;
  int size = 0;
  bool good = EVP_CipherInit_ex(cipher, nullptr, nullptr, nullptr, nonce.data(), 1) == 1;
  good = good && EVP_EncryptUpdate(cipher, nullptr, &size, unsigned_bytes(context),
                                   checked_length(context.size())) == 1;
  if (!plain.empty()) {
    good = good && EVP_EncryptUpdate(cipher, to, &size, unsigned_bytes(plain),
                                     checked_length(plain.size())) == 1;
  }
  good = good && EVP_EncryptFinal_ex(cipher, to + plain.size(), &size) == 1;
  good = good && EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, int{kTagBytes},
                                     to + plain.size()) == 1;
  EMBER_CHECK(good, "OpenSSL seals");
  contexts_->give_back(1, cipher);
}

bool SealingKey::open(const Nonce& nonce, std::string_view context, std::string_view sealed,
                      std::string& plain) const {
  plain.clear();
  if (sealed.size() < kTagBytes) return false;
  const std::string_view body = sealed.substr(0, sealed.size() - kTagBytes);
  std::array<unsigned char, kTagBytes> tag;
  std::memcpy(tag.data(), sealed.data() + body.size(), tag.size());
  EVP_CIPHER_CTX* cipher = contexts_->take(0);
  plain.resize(body.size());
  unsigned char nothing[kTagBytes];
  int size = 0;
  bool good = EVP_CipherInit_ex(cipher, nullptr, nullptr, nullptr, nonce.data(), 0) == 1;
  good = good && EVP_DecryptUpdate(cipher, nullptr, &size, unsigned_bytes(context),
                                   checked_length(context.size())) == 1;
  if (!body.empty()) {
    good = good && EVP_DecryptUpdate(cipher, unsigned_bytes(plain), &size, unsigned_bytes(body),
                                     checked_length(body.size())) == 1;
  }
  good = good &&
         EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, int{kTagBytes}, tag.data()) == 1;
  good = good && EVP_DecryptFinal_ex(cipher, nothing, &size) == 1;
  contexts_->give_back(0, cipher);
  if (good) return true;
  // What was decrypted without proof is shown to nobody.
  wipe(plain.data(), plain.size());
  plain.clear();
  return false;
}

}  // namespace ember
