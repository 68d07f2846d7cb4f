// Exports with random damage, of bytes, of entries and of tar headers: refused, or read as they
// were. EMBER_FUZZ: how many (a longer run has the label slow).
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/store/transfer/made_transfer.h"

namespace ember::testing {
namespace {

constexpr size_t kBlock = 512;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

uint64_t rounds() {
  const char* asked = std::getenv("EMBER_FUZZ");
  return asked == nullptr ? 3000 : std::strtoull(asked, nullptr, 10);
}

long peak_kib() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// Offsets of the headers of a tar that we wrote.
std::vector<size_t> headers_of(const std::string& tar) {
  std::vector<size_t> headers;
  for (size_t at = 0; at + kBlock <= tar.size() && tar[at] != '\0';) {
    headers.push_back(at);
    const size_t size = std::strtoull(tar.substr(at + 124, 12).c_str(), nullptr, 8);
    at += kBlock + (size + kBlock - 1) / kBlock * kBlock;
  }
  return headers;
}

// So that a changed header is not refused for its checksum alone.
void fix_header(std::string& tar, size_t at) {
  std::memset(tar.data() + at + 148, ' ', 8);
  unsigned sum = 0;
  for (size_t i = 0; i < kBlock; ++i) sum += static_cast<unsigned char>(tar[at + i]);
  char text[8];
  std::snprintf(text, sizeof text, "%06o", sum & 0777777);
  std::memcpy(tar.data() + at + 148, text, 7);
}

void change_header(std::string& tar, Prng& prng) {
  const std::vector<size_t> headers = headers_of(tar);
  const size_t at = headers[prng.below(headers.size())];
  const char* sizes[] = {"77777777777", "00000000000", "00000000001", "00001000000",
                         "-1",          "99999999999", "00000000777", "           "};
  const char* names[] = {"../x", "/abs", "blocks/0000000001", "manifest.json", "end.json",
                         ".",    "..",   "././@LongLink",     "conversations/00000000000000aa"};
  switch (prng.below(6)) {
    case 0:
      std::memcpy(tar.data() + at + 124, sizes[prng.below(8)], 2);
      std::strncpy(tar.data() + at + 124, sizes[prng.below(8)], 12);
      break;
    case 1:  // base 256
      for (size_t i = 0; i < 12; ++i) tar[at + 124 + i] = static_cast<char>(prng());
      tar[at + 124] = static_cast<char>(prng.below(2) == 0 ? 0x80 : 0xff);
      break;
    case 2:
      std::memset(tar.data() + at, 0, 100);
      std::strncpy(tar.data() + at, names[prng.below(9)], 99);
      break;
    case 3:
      tar[at + 156] = "0123456789xgLKSDVMNAX\0"[prng.below(22)];
      break;
    case 4:
      std::memcpy(tar.data() + at + 257, prng.below(2) == 0 ? "ustar  \0" : "\0\0\0\0\0\0\0\0", 8);
      break;
    default:
      tar[at + prng.below(kBlock)] = static_cast<char>(prng());
  }
  fix_header(tar, at);
}

void change_entries(std::string& tar, Prng& prng) {
  Entries entries = entries_of(tar);
  const size_t i = prng.below(entries.size());
  const size_t j = prng.below(entries.size());
  std::string& body = entries[i].second;
  switch (prng.below(5)) {
    case 0:
      std::swap(entries[i], entries[j]);
      break;
    case 1:
      entries.insert(entries.begin() + static_cast<std::ptrdiff_t>(j), entries[i]);
      break;
    case 2:
      entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    case 3:
      body.resize(prng.below(body.size() + 1));
      break;
    default:
      for (uint64_t n = 1 + prng.below(4); n > 0 && !body.empty(); --n) {
        body[prng.below(body.size())] = static_cast<char>(prng());
      }
  }
  tar = prng.below(2) == 0 ? tar_of(entries) : sealed(std::move(entries));
}

void change_bytes(std::string& tar, Prng& prng) {
  switch (prng.below(4)) {
    case 0:
      tar.resize(prng.below(tar.size()));
      break;
    case 1:
      tar.insert(prng.below(tar.size()), 1 + prng.below(600), static_cast<char>(prng()));
      break;
    case 2: {
      const size_t from = prng.below(tar.size());
      tar.erase(from, 1 + prng.below(600));
      break;
    }
    default:
      for (uint64_t n = 1 + prng.below(8); n > 0; --n) {
        tar[prng.below(tar.size())] ^= static_cast<char>(1u << prng.below(8));
      }
  }
}

// What a change that fits together again may leave: the same, or less or other of it, never more
// than a file may hold. Only what nothing covers (a name's padding, an owner) may change unseen.
TEST(TransferFuzzTest, DamageIsRefusedOrChangesNothing) {
  const uint64_t count = rounds();
  uint64_t refused = 0;
  uint64_t equal = 0;
  uint64_t forged = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    const MadeTransfer made = made_transfer(seed % 16, 6);
    std::string tar = written(made);
    Prng prng(seed + 1000);
    const uint64_t kind = prng.below(3);
    if (kind == 0) change_header(tar, prng);
    if (kind == 1) change_bytes(tar, prng);
    if (kind == 2) change_entries(tar, prng);
    const Result<Read> read = read_all(tar, 1 + prng.below(5000));
    if (!read.ok()) {
      EXPECT_FALSE(read.error().message.empty());
      ++refused;
    } else if (same(made, *read)) {
      ++equal;
    } else {
      // Sealed anew it is an export of its own: of fewer entries, or another text in them.
      EXPECT_EQ(kind, 2u) << "seed " << seed;
      ++forged;
    }
  }
  std::printf("%llu exports: %llu refused, %llu as they were, %llu others\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(refused),
              static_cast<unsigned long long>(equal), static_cast<unsigned long long>(forged));
  EXPECT_GT(refused, count / 2);
  if (!kSanitized) {
    EXPECT_LT(peak_kib(), 256 * 1024);
  }
}

}  // namespace
}  // namespace ember::testing
