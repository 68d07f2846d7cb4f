// StoreDirectory: made whole or not at all, held by one, and never believed when damaged.
#include "store/store_directory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "base/bytes.h"
#include "tests/store/disk/disk_store_testing.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::unique_ptr<StoreDirectory> open_ok(const std::string& path) {
  auto store = StoreDirectory::open(path);
  EXPECT_TRUE(store.ok()) << store.error().message;
  return store.ok() ? std::move(*store) : nullptr;
}

TEST(StoreDirectoryTest, IsMadeOnceAndKeepsItsSecret) {
  ScratchFolder folder;
  std::string path = folder.sub("a/b/store");
  HashSecret secret;
  {
    auto store = open_ok(path);
    EXPECT_TRUE(store->created());
    EXPECT_FALSE(store->read_only());
    secret = store->secret();
    EXPECT_NE(secret, HashSecret{});
  }
  auto store = open_ok(path);
  EXPECT_FALSE(store->created());
  EXPECT_EQ(store->secret(), secret);
  EXPECT_NE(open_ok(folder.sub("other"))->secret(), secret);
}

TEST(StoreDirectoryTest, IsForItsOwnerAlone) {
  ScratchFolder folder;
  auto store = open_ok(folder.sub("store"));
  EXPECT_EQ(fs::status(folder.sub("store")).permissions(), fs::perms::owner_all);
  for (const std::string& file : files_below(folder.sub("store"))) {
    EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  }
}

TEST(StoreDirectoryTest, SecondOpeningIsBusyAndNamesTheHolder) {
  ScratchFolder folder;
  auto store = open_ok(folder.sub("store"));
  auto second = StoreDirectory::open(folder.sub("store"));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kBusy);
  EXPECT_NE(second.error().message.find(std::to_string(::getpid())), std::string::npos);
  auto looking = StoreDirectory::open_read_only(folder.sub("store"));
  ASSERT_TRUE(looking.ok());
  EXPECT_EQ((*looking)->holder_pid(), ::getpid());
  EXPECT_TRUE((*looking)->read_only());
  store.reset();
  EXPECT_EQ((*StoreDirectory::open_read_only(folder.sub("store")))->holder_pid(), 0);
  EXPECT_TRUE(StoreDirectory::open(folder.sub("store")).ok());
}

TEST(StoreDirectoryTest, KilledHolderLeavesNoLock) {
  ScratchFolder folder;
  open_ok(folder.sub("store")).reset();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t child = ::fork();
  if (child == 0) {
    auto store = StoreDirectory::open(folder.sub("store"));
    char answer = store.ok() ? 'y' : 'n';
    if (::write(ready[1], &answer, 1) != 1) ::_exit(1);
    ::pause();
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  auto held = StoreDirectory::open(folder.sub("store"));
  ASSERT_FALSE(held.ok());
  EXPECT_NE(held.error().message.find(std::to_string(child)), std::string::npos);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(StoreDirectory::open(folder.sub("store")).ok());
}

TEST(StoreDirectoryTest, EveryChangedByteOfTheIdentityIsDamage) {
  ScratchFolder folder;
  std::string path = folder.sub("store");
  open_ok(path).reset();
  const std::string good = read_file(path + "/IDENTITY");
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ static_cast<char>(1 << (at % 8)));
    write_file(path + "/IDENTITY", bad);
    auto store = StoreDirectory::open(path);
    ASSERT_FALSE(store.ok()) << at;
    EXPECT_EQ(store.error().code, ErrorCode::kCorruption) << at;
    EXPECT_EQ(read_file(path + "/IDENTITY"), bad);
    write_file(path + "/IDENTITY", good.substr(0, at));
    EXPECT_FALSE(StoreDirectory::open(path).ok()) << at;
  }
}

TEST(StoreDirectoryTest, IntactStoreOfAnotherVersionIsRefusedByName) {
  ScratchFolder folder;
  std::string path = folder.sub("store");
  open_ok(path).reset();
  std::string bytes = read_file(path + "/IDENTITY");
  bytes[4] = 9;
  bytes.resize(bytes.size() - 8);
  bytes += "a field of version 9";
  append_value(bytes, checksum64(as_bytes(bytes)));
  write_file(path + "/IDENTITY", bytes);
  write_file(path + "/LOCK", "as version 9 left it");
  auto store = StoreDirectory::open(path);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(store.error().message.find("version 9"), std::string::npos);
  EXPECT_NE(store.error().message.find("reads 2"), std::string::npos);
  EXPECT_EQ(read_file(path + "/IDENTITY"), bytes);
  EXPECT_EQ(read_file(path + "/LOCK"), "as version 9 left it");
}

TEST(StoreDirectoryTest, FolderInTheIdentitysPlaceIsDamage) {
  ScratchFolder folder;
  open_ok(folder.sub("store")).reset();
  fs::remove(folder.sub("store/IDENTITY"));
  fs::create_directory(folder.sub("store/IDENTITY"));
  auto store = StoreDirectory::open(folder.sub("store"));
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, ErrorCode::kCorruption);
}

TEST(StoreDirectoryTest, DiscardedStoreLeavesNothingButWhatWasThere) {
  ScratchFolder folder;
  fs::create_directory(folder.sub("there"));
  auto store = open_ok(folder.sub("there/a/store"));
  fs::create_directories(folder.sub("there/a/store/blocks"));
  write_file(folder.sub("there/a/store/blocks/CURRENT"), "x");
  store->discard();
  EXPECT_TRUE(fs::is_empty(folder.sub("there")));
}

TEST(StoreDirectoryTest, NothingSpeaksAgainstWritingWhereThereIsRoom) {
  ScratchFolder folder;
  EXPECT_EQ(why_not_writable(folder.path()), "");
  EXPECT_NE(why_not_writable(folder.sub("absent")).find("absent"), std::string::npos);
}

TEST(StoreDirectoryTest, FolderWithOtherFilesIsRefusedAndLeftAlone) {
  ScratchFolder folder;
  write_file(folder.sub("letter.txt"), "hello");
  auto store = StoreDirectory::open(folder.path());
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(files_below(folder.path()).size(), 1u);
  auto file = StoreDirectory::open(folder.sub("letter.txt"));
  EXPECT_EQ(file.error().code, ErrorCode::kInvalidArgument);
}

TEST(StoreDirectoryTest, LostIdentityIsDamage) {
  ScratchFolder folder;
  std::string path = folder.sub("store");
  open_ok(path).reset();
  fs::create_directory(path + "/blocks");
  fs::remove(path + "/IDENTITY");
  EXPECT_EQ(StoreDirectory::open(path).error().code, ErrorCode::kCorruption);
}

TEST(StoreDirectoryTest, CreationThatWasCutShortIsBegunAnew) {
  ScratchFolder folder;
  write_file(folder.sub("LOCK"), "1\n");
  write_file(folder.sub("IDENTITY.tmp"), "half");
  EXPECT_TRUE(open_ok(folder.path())->created());
}

TEST(StoreDirectoryTest, NewStoreThatCannotBeMadeLeavesNothing) {
  ScratchFolder folder;
  write_file(folder.sub("file"), "x");
  auto store = StoreDirectory::open(folder.sub("file/store"));
  ASSERT_FALSE(store.ok());
  EXPECT_NE(store.error().message.find("file"), std::string::npos);
  EXPECT_EQ(files_below(folder.path()).size(), 1u);
  auto absent = StoreDirectory::open_read_only(folder.sub("absent"));
  EXPECT_EQ(absent.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(folder.sub("absent")));
  if (::geteuid() == 0) return;  // for root no folder is closed
  fs::create_directory(folder.sub("closed"));
  fs::permissions(folder.sub("closed"), fs::perms::owner_read | fs::perms::owner_exec);
  auto closed = StoreDirectory::open(folder.sub("closed/new/store"));
  EXPECT_EQ(closed.error().code, ErrorCode::kIo);
  fs::permissions(folder.sub("closed"), fs::perms::owner_all);
  EXPECT_TRUE(fs::is_empty(folder.sub("closed")));
}

TEST(StoreDirectoryTest, StoreWithoutPermissionIsOpenedForReading) {
  if (::geteuid() == 0) GTEST_SKIP() << "for root no folder is closed";
  ScratchFolder folder;
  std::string path = folder.sub("store");
  open_ok(path).reset();
  fs::permissions(path + "/LOCK", fs::perms::owner_read);
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_TRUE(open_ok(path)->read_only());
  fs::permissions(path, fs::perms::owner_all);
}

TEST(StoreDirectoryTest, DefaultPathFollowsXdg) {
  ::setenv("HOME", "/home/someone", 1);
  ::setenv("XDG_DATA_HOME", "/data/of/someone", 1);
  EXPECT_EQ(default_store_path(), "/data/of/someone/emberkv");
  ::setenv("XDG_DATA_HOME", "relative", 1);
  EXPECT_EQ(default_store_path(), "/home/someone/.local/share/emberkv");
  ::unsetenv("XDG_DATA_HOME");
  EXPECT_EQ(default_store_path(), "/home/someone/.local/share/emberkv");
}

}  // namespace
}  // namespace ember
