// Block hash: the format is fixed, the fields can not be confused, nothing is left out.
#include "prefix_index/block_hash.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <set>
#include <string>
#include <vector>

#include "base/prng.h"

namespace ember {
namespace {

using Tokens = std::vector<TokenId>;

HashSecret secret_of(uint64_t seed) {
  HashSecret secret;
  Prng random(seed);
  for (uint8_t& byte : secret) byte = static_cast<uint8_t>(random());
  return secret;
}

NamespaceHash namespace_of(uint8_t number) {
  NamespaceHash hash;
  hash.bytes.fill(number);
  return hash;
}

Tokens count_up(size_t count) {
  Tokens tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = static_cast<TokenId>(i * 1000 + 7);
  return tokens;
}

void put_field(std::string& out, uint8_t tag, std::string_view bytes) {
  append_value(out, tag);
  append_value(out, static_cast<uint32_t>(bytes.size()));
  out.append(bytes);
}

// The definition, byte by byte in one buffer.
BlockHash reference_hash(const HashSecret& secret, const std::string& framed) {
  const XXH128_hash_t value =
      XXH3_128bits_withSecret(framed.data(), framed.size(), secret.data(), secret.size());
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, value);
  BlockHash hash;
  std::memcpy(hash.bytes.data(), canonical.digest, sizeof canonical.digest);
  return hash;
}

TEST(BlockHashTest, TheBytesThatAreHashedAreThoseOfTheDefinition) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const HashSecret secret = secret_of(seed);
    const std::string scope(seed * 37, 's');
    const BlockHasher hasher(secret, namespace_of(9), scope);
    std::string framed;
    put_field(framed, 0, "emberkv block 1");
    put_field(framed, 1, namespace_of(9).view());
    put_field(framed, 2, scope);
    EXPECT_EQ(hasher.root(), reference_hash(secret, framed));
    const Tokens tokens = count_up(1 + seed * 13);
    put_field(framed, 3, hasher.root().view());
    put_field(framed, 4,
              {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(TokenId)});
    EXPECT_EQ(hasher.next(hasher.root(), tokens), reference_hash(secret, framed));
  }
}

// Stored keys depend on these: a change of a value is a change of format.
TEST(BlockHashTest, GoldenValues) {
  const BlockHasher hasher(secret_of(1), namespace_of(0xab), "shared");
  EXPECT_EQ(hasher.root().hex(), "b8d4df1adb76b54ca914e87b0ab2dc35");
  const BlockHash first = hasher.next(hasher.root(), count_up(64));
  EXPECT_EQ(first.hex(), "4aa827a058bc131c2be495aa47c0e010");
  EXPECT_EQ(hasher.next(first, count_up(64)).hex(), "6c0e78133548b6e0d7e57a668aee504c");
  EXPECT_EQ(hasher.next(first, count_up(1)).hex(), "d7ddb67c79a85da6def91e726dbb072e");
  const BlockHasher tenant(secret_of(1), namespace_of(0xab), "tenant-a");
  EXPECT_EQ(tenant.root().hex(), "626c1dbebf5972077b4c3d53edd4f0d3");
}

TEST(BlockHashTest, EveryFieldCounts) {
  const Tokens tokens = count_up(64);
  std::set<BlockHash> all;
  size_t made = 0;
  const auto add = [&](const BlockHasher& hasher, const BlockHash& parent, const Tokens& t) {
    all.insert(hasher.next(parent, t));
    ++made;
  };
  const BlockHasher base(secret_of(1), namespace_of(1), "shared");
  add(base, base.root(), tokens);
  add(base, base.next(base.root(), tokens), tokens);
  add(base, base.root(), count_up(63));
  for (size_t i = 0; i < tokens.size(); ++i) {
    Tokens other = tokens;
    other[i] ^= 1;
    add(base, base.root(), other);
  }
  for (size_t byte : {0u, 63u, 64u, 150u}) {  // XXH3 does not reach the last ones for short inputs
    HashSecret secret = secret_of(1);
    secret[byte] ^= 1;
    add(BlockHasher(secret, namespace_of(1), "shared"), base.root(), tokens);
  }
  add(BlockHasher(secret_of(1), namespace_of(2), "shared"), base.root(), tokens);
  add(BlockHasher(secret_of(1), namespace_of(1), "Shared"), base.root(), tokens);
  EXPECT_EQ(all.size(), made);
}

TEST(BlockHashTest, FieldsAreNotConfusedWithTheirNeighbours) {
  // The same letters, cut differently between scope, namespace, parent and tokens.
  NamespaceHash ends_in_a = namespace_of('x');
  ends_in_a.bytes[15] = 'a';
  const BlockHasher one(secret_of(1), ends_in_a, "b");
  const BlockHasher two(secret_of(1), namespace_of('x'), "ab");
  EXPECT_NE(one.root(), two.root());

  // A scope that looks like a framed parent and tokens does not pass for the block after them.
  const BlockHasher plain(secret_of(1), namespace_of(1), "s");
  const Tokens tokens = {1, 2};
  std::string forged = "s";
  put_field(forged, 3, plain.root().view());
  put_field(forged, 4, {reinterpret_cast<const char*>(tokens.data()), 8});
  EXPECT_NE(BlockHasher(secret_of(1), namespace_of(1), forged).root(),
            plain.next(plain.root(), tokens));

  // Tokens that continue as if the parent's last bytes were theirs.
  BlockHash parent = plain.root();
  Tokens longer = {0, 1, 2};
  std::memcpy(longer.data(), parent.bytes.data() + 12, 4);
  EXPECT_NE(plain.next(parent, longer), plain.next(parent, tokens));
  const BlockHasher empty_scope(secret_of(1), namespace_of(1), "");
  EXPECT_NE(empty_scope.root(), plain.root());
}

TEST(BlockHashTest, ATailAndTheBlockThatExtendsItDiffer) {
  const BlockHasher hasher(secret_of(1), namespace_of(1), "shared");
  const Tokens zeros(64, 0);
  std::set<BlockHash> all;
  for (size_t n = 1; n <= 64; ++n)
    all.insert(hasher.next(hasher.root(), TokenSpan(zeros).first(n)));
  EXPECT_EQ(all.size(), 64u);
}

TEST(BlockHashTest, ChecksumAndDigestAreThoseOfXxhash) {
  // The published values for the empty input, in the order in which xxhsum prints them.
  EXPECT_EQ(checksum64({}), 0x2d06800538d394c2ull);
  EXPECT_EQ(digest128({}).hex(), "99aa06d3014798d86001c324468d497f");
  const std::string text(1000, 'k');
  EXPECT_EQ(checksum64(as_bytes(text)), XXH3_64bits(text.data(), text.size()));
  EXPECT_NE(digest128(as_bytes(text)), digest128(as_bytes(text.substr(1))));
}

TEST(BlockHashTest, HexIsThirtyTwoDigitsInByteOrder) {
  BlockHash hash;
  hash.bytes[0] = 0x0f;
  hash.bytes[15] = 0xa0;
  EXPECT_EQ(hash.hex(), "0f0000000000000000000000000000a0");
  EXPECT_EQ(hash.view().size(), 16u);
}

TEST(BlockHashDeathTest, ABlockWithoutTokensAborts) {
  const BlockHasher hasher(secret_of(1), namespace_of(1), "shared");
  EXPECT_DEATH(hasher.next(hasher.root(), {}), "no tokens");
}

}  // namespace
}  // namespace ember
