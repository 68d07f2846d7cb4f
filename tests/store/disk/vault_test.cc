// Vault: keys that are kept, refused and destroyed; sealed values; nonces; modes.
#include "store/disk/vault.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>

#include "store/disk/key_file.h"
#include "store/store_directory.h"
#include "tests/store/disk/disk_store_testing.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

constexpr ValuePlace kPlace{ValueKind::kRecord, "a place"};

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string ok_or_fail(Result<std::string> result) {
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.ok() ? *result : std::string();
}

class VaultTest : public ::testing::Test {
 protected:
  VaultTest() : master_(SecretKey::random()) { fill_random(secret_.data(), secret_.size()); }

  VaultOptions options() const {
    VaultOptions made;
    made.store = folder_.path();
    return made;
  }
  std::unique_ptr<Vault> create() {
    auto vault = Vault::create(options(), master_, secret_);
    EXPECT_TRUE(vault.ok()) << vault.error().message;
    return vault.ok() ? std::move(*vault) : nullptr;
  }
  std::unique_ptr<Vault> reopen() {
    auto vault = Vault::open(options(), master_);
    EXPECT_TRUE(vault.ok()) << vault.error().message;
    return vault.ok() ? std::move(*vault) : nullptr;
  }
  std::string keys() const { return folder_.sub("KEYS"); }

  ScratchFolder folder_;
  SecretKey master_;
  HashSecret secret_{};
};

TEST_F(VaultTest, SealedValuesOpenInTheNextProcess) {
  std::vector<std::pair<std::string, std::string>> values;
  {
    auto vault = create();
    for (size_t size : {0u, 1u, 15u, 16u, 17u, 4096u, 100'000u}) {
      std::string plain(size, '\0');
      fill_random(plain.data(), plain.size());
      std::string sealed = ok_or_fail(vault->seal("tenant", kPlace, plain));
      EXPECT_EQ(sealed.size(), plain.size() + kValueSealBytes);
      values.emplace_back(std::move(plain), std::move(sealed));
    }
  }
  auto vault = reopen();
  EXPECT_EQ(vault->secret(), secret_);
  EXPECT_EQ(vault->scopes(), std::vector<std::string>{"tenant"});
  for (const auto& [plain, sealed] : values) {
    auto opened = vault->open(kPlace, sealed);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    EXPECT_EQ(*opened, plain);
  }
}

TEST_F(VaultTest, EveryChangedBitOfASealedValueIsRefused) {
  auto vault = create();
  ok_or_fail(vault->seal("other", kPlace, "so that a changed key id may name another key"));
  const std::string sealed = ok_or_fail(vault->seal("tenant", kPlace, "what was said"));
  for (size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    std::string bad = sealed;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ static_cast<char>(1 << (bit % 8)));
    EXPECT_FALSE(vault->open(kPlace, bad).ok()) << bit;
  }
  for (size_t size = 0; size < sealed.size(); ++size) {
    EXPECT_FALSE(vault->open(kPlace, sealed.substr(0, size)).ok()) << size;
  }
}

TEST_F(VaultTest, ValueThatWasMovedIsRefused) {
  auto vault = create();
  const std::string sealed = ok_or_fail(vault->seal("tenant", kPlace, "what was said"));
  EXPECT_TRUE(vault->open(kPlace, sealed).ok());
  EXPECT_FALSE(vault->open({ValueKind::kRecord, "another place"}, sealed).ok());
  EXPECT_FALSE(vault->open({ValueKind::kTail, "a place"}, sealed).ok());
}

TEST_F(VaultTest, NoKeyAndNonceServeTwice) {
  VaultOptions small = options();
  small.messages_per_salt = 7;
  std::set<std::string> seen;
  constexpr size_t kOpenings = 6, kValues = 50;
  create().reset();
  for (size_t opening = 0; opening < kOpenings; ++opening) {
    auto vault = Vault::open(small, master_);
    ASSERT_TRUE(vault.ok());
    for (size_t i = 0; i < kValues; ++i) {
      const std::string sealed = ok_or_fail((*vault)->seal("tenant", kPlace, "the same words"));
      seen.insert(sealed.substr(0, kSealHeadBytes));
      EXPECT_TRUE((*vault)->open(kPlace, sealed).ok());
      // The counter is what the promise rests on: it begins anew only below a new salt.
      const auto head = decode_seal_head(sealed);
      ASSERT_TRUE(head.ok());
      EXPECT_EQ(head->nonce[3], i % 7);
    }
  }
  EXPECT_EQ(seen.size(), kOpenings * kValues);
}

TEST_F(VaultTest, ForgottenScopeIsGoneAndNoDamage) {
  auto vault = create();
  const std::string hers = ok_or_fail(vault->seal("hers", kPlace, "her words"));
  const std::string his = ok_or_fail(vault->seal("his", kPlace, "his words"));
  const std::string before = read_file(keys());
  auto forgotten = vault->forget("hers");
  ASSERT_TRUE(forgotten.ok());
  EXPECT_TRUE(*forgotten);
  EXPECT_FALSE(*vault->forget("hers"));
  const std::string newer = ok_or_fail(vault->seal("hers", kPlace, "her new words"));
  for (int round = 0; round < 2; ++round) {
    auto gone = vault->open(kPlace, hers);
    ASSERT_TRUE(gone.ok()) << gone.error().message;
    EXPECT_FALSE(gone->has_value());
    EXPECT_EQ(**vault->open(kPlace, his), "his words");
    EXPECT_EQ(**vault->open(kPlace, newer), "her new words");
    vault = reopen();
  }
  // The wrapped key is in no file; it lay behind salt, check and numbers, and the wrapped secret.
  const std::string wrapped = before.substr(64 + 36 + kHashSecretBytes + 8, 12 + 32);
  EXPECT_NE(before.find(wrapped), std::string::npos);
  for (const std::string& file : files_below(folder_.path())) {
    EXPECT_EQ(read_file(file).find(wrapped), std::string::npos) << file;
  }
}

TEST_F(VaultTest, ForgettingWipesTheOldFile) {
  auto vault = create();
  ok_or_fail(vault->seal("hers", kPlace, "her words"));
  // A second name keeps the old file visible after it was replaced.
  fs::create_hard_link(keys(), folder_.sub("old"));
  ASSERT_TRUE(vault->forget("hers").ok());
  const std::string old = read_file(folder_.sub("old"));
  EXPECT_EQ(old, std::string(old.size(), '\0'));
}

TEST_F(VaultTest, ForgettingThatCannotBeWrittenKeepsTheKey) {
  auto vault = create();
  const std::string sealed = ok_or_fail(vault->seal("hers", kPlace, "her words"));
  fs::create_directory(folder_.sub("KEYS.tmp"));
  EXPECT_FALSE(vault->forget("hers").ok());
  EXPECT_FALSE(vault->seal("new", kPlace, "no key, no value").ok());
  EXPECT_EQ(**vault->open(kPlace, sealed), "her words");
  vault = reopen();
  EXPECT_EQ(**vault->open(kPlace, sealed), "her words");
}

TEST_F(VaultTest, AnotherMasterKeyIsToldFromDamage) {
  ok_or_fail(create()->seal("tenant", kPlace, "words"));
  const std::string good = read_file(keys());
  auto wrong = Vault::open(options(), SecretKey::random());
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalidArgument);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ static_cast<char>(1 << (at % 8)));
    write_file(keys(), bad);
    auto vault = Vault::open(options(), master_);
    ASSERT_FALSE(vault.ok()) << at;
    EXPECT_EQ(vault.error().code, ErrorCode::kCorruption) << at;
  }
  write_file(keys(), good);
  EXPECT_TRUE(Vault::open(options(), master_).ok());
}

TEST_F(VaultTest, KeyOfAnotherScopeDoesNotFitTheName) {
  auto vault = create();
  ok_or_fail(vault->seal("his", kPlace, "his words"));
  ok_or_fail(vault->seal("hers", kPlace, "her words"));
  auto file = decode_keys(keys(), read_file(keys()));
  ASSERT_TRUE(file.ok());
  std::swap(file->entries[1].id, file->entries[2].id);  // checksummed anew, as an attacker would
  write_file(keys(), encode_keys(*file));
  auto swapped = Vault::open(options(), master_);
  ASSERT_FALSE(swapped.ok());
  EXPECT_EQ(swapped.error().code, ErrorCode::kCorruption);
}

// NIST's test case 16 of GCM: 256-bit key, 60 bytes of plain text, 20 of context.
TEST(SealTest, AgreesWithThePublishedVector) {
  const auto bytes = [](std::string_view hex) { return *from_hex(hex); };
  SecretKey key;
  const std::string raw =
      bytes("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
  std::memcpy(key.bytes().data(), raw.data(), raw.size());
  Nonce nonce;
  std::memcpy(nonce.data(), bytes("cafebabefacedbaddecaf888").data(), nonce.size());
  const std::string plain = bytes(
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
      "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39");
  const std::string context = bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2");
  const SealingKey sealing(std::move(key));
  std::string sealed;
  sealing.seal(nonce, context, plain, sealed);
  EXPECT_EQ(sealed, bytes("522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
                          "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
                          "76fc6ece0f4e1768cddf8853bb2d551b"));
  std::string opened;
  EXPECT_TRUE(sealing.open(nonce, context, sealed, opened));
  EXPECT_EQ(opened, plain);
}

TEST(SealTest, PrintsItsCostBesideMemcpy) {
  SecretKey key = SecretKey::random();
  const SealingKey sealing(std::move(key));
  constexpr size_t kBytes = 512u << 10;
  std::string plain(kBytes, 'x'), sealed, opened;
  Nonce nonce{};
  const auto rate = [](auto&& run) {
    double best = 0;
    for (int round = 0; round < 5; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < 20; ++i) run();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      best = std::max(best, 20.0 * kBytes / took.count() / 1e9);
    }
    return best;
  };
  const double in = rate([&] {
    sealed.clear();
    sealing.seal(nonce, "context", plain, sealed);
  });
  const double out = rate([&] { EXPECT_TRUE(sealing.open(nonce, "context", sealed, opened)); });
  const double copy = rate([&] {
    opened.resize(kBytes);
    std::memcpy(opened.data(), plain.data(), kBytes);
  });
  std::printf("AES-256-GCM, 512 KiB, one core: seal %.2f GB/s, open %.2f GB/s, memcpy %.2f GB/s\n",
              in, out, copy);
}

class KeyFileTest : public ::testing::Test {
 protected:
  EncryptionOptions encrypted() const { return {true, folder_.sub("keys/master.key")}; }
  std::string store() const { return folder_.sub("store"); }
  std::string refusal(const EncryptionOptions& encryption) const {
    auto opened = StoreDirectory::open(store(), encryption);
    EXPECT_FALSE(opened.ok());
    if (opened.ok()) return "";
    EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument);
    return opened.error().message;
  }
  std::string trouble(const EncryptionOptions& encryption) const {
    auto opened = StoreDirectory::open(store(), encryption);
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    if (!opened.ok()) return "";
    EXPECT_EQ((*opened)->sealer(), nullptr);
    return (*opened)->key_trouble();
  }

  ScratchFolder folder_;
};

TEST_F(KeyFileTest, IsMadeWithANewStoreAndForItsOwnerAlone) {
  const mode_t before = ::umask(0277);
  auto store_made = StoreDirectory::open(store(), encrypted());
  ::umask(before);
  ASSERT_TRUE(store_made.ok()) << store_made.error().message;
  EXPECT_EQ((*store_made)->key_trouble(), "");
  EXPECT_NE((*store_made)->sealer(), nullptr);
  const HashSecret secret = (*store_made)->secret();
  EXPECT_EQ((*store_made)->open_to_others(), "");
  store_made->reset();
  for (const std::string& file : files_below(folder_.path())) {
    EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write)
        << file;
    // Wrapped, not as it is.
    const std::string_view part(reinterpret_cast<const char*>(secret.data()), 16);
    EXPECT_EQ(read_file(file).find(part), std::string::npos) << file;
  }
  for (const char* folder : {"store", "keys"}) {
    EXPECT_EQ(fs::status(folder_.sub(folder)).permissions(), fs::perms::owner_all) << folder;
  }
  auto again = StoreDirectory::open(store(), encrypted());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)->secret(), secret);
}

TEST_F(KeyFileTest, MissingOrWrongKeyDestroysNothingAndSaysSo) {
  StoreDirectory::open(store(), encrypted())->reset();
  const std::string keys = read_file(store() + "/KEYS");
  EncryptionOptions other{true, folder_.sub("other.key")};
  EXPECT_NE(trouble(other).find("other.key: it is missing"), std::string::npos) << trouble(other);
  EXPECT_FALSE(fs::exists(other.key_file)) << "a key was made for a store that has one";
  ASSERT_TRUE(make_key_file(other.key_file).ok());
  EXPECT_NE(trouble(other).find("another master key than the one in " + other.key_file),
            std::string::npos);
  write_file(other.key_file, "emberkv-master-key-1 0123\n");
  EXPECT_NE(trouble(other).find("expected one line"), std::string::npos);
  EXPECT_EQ(read_file(store() + "/KEYS"), keys);
  fs::permissions(encrypted().key_file, fs::perms::group_read, fs::perm_options::add);
  EXPECT_NE(trouble(encrypted()).find("chmod 600"), std::string::npos);
  fs::permissions(encrypted().key_file, fs::perms::group_read, fs::perm_options::remove);
  EXPECT_EQ((*StoreDirectory::open(store(), encrypted()))->key_trouble(), "");
}

TEST_F(KeyFileTest, ClearAndEncryptedStoresAreNotConfused) {
  StoreDirectory::open(store())->reset();
  EXPECT_NE(refusal(encrypted()).find("lies in clear"), std::string::npos);
  EXPECT_FALSE(fs::exists(encrypted().key_file));
  fs::remove_all(store());
  StoreDirectory::open(store(), encrypted())->reset();
  EXPECT_NE(refusal({}).find("--encrypt"), std::string::npos);
  auto looking = StoreDirectory::open_read_only(store());
  ASSERT_FALSE(looking.ok());
  EXPECT_EQ(looking.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(KeyFileTest, KeyInsideTheStoreIsRefusedAndNothingIsLeft) {
  EXPECT_NE(refusal({true, store() + "/master.key"}).find("own folder"), std::string::npos);
  EXPECT_FALSE(fs::exists(store()));
}

TEST_F(KeyFileTest, OneKeyFileServesTwoStoresWithoutSharingKeys) {
  auto first = StoreDirectory::open(store(), encrypted());
  auto second = StoreDirectory::open(folder_.sub("second"), encrypted());
  ASSERT_TRUE(first.ok() && second.ok());
  auto sealed = (*first)->sealer()->seal("shared", kPlace, "words");
  ASSERT_TRUE(sealed.ok());
  ASSERT_TRUE((*second)->sealer()->seal("shared", kPlace, "words").ok());
  EXPECT_FALSE((*second)->sealer()->open(kPlace, *sealed).ok());
}

TEST_F(KeyFileTest, StoreThatOthersCanReachIsReported) {
  auto made = StoreDirectory::open(store());
  EXPECT_EQ((*made)->open_to_others(), "");
  fs::permissions(store() + "/IDENTITY", fs::perms::others_read, fs::perm_options::add);
  const std::string report = (*made)->open_to_others();
  EXPECT_NE(report.find("IDENTITY (mode 0604)"), std::string::npos) << report;
  EXPECT_NE(report.find("chmod -R go="), std::string::npos) << report;
}

}  // namespace
}  // namespace ember
