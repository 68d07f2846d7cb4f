// The shadow file: what comes back, and what damage costs.
#include "store/cache/shadow_file.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "store/disk/vault.h"
#include "tests/support/temp_folder.h"

namespace ember {
namespace {

std::vector<ShadowMark> made_marks(size_t count, uint64_t seed) {
  std::vector<ShadowMark> marks;
  for (size_t i = 0; i < count; ++i) {
    marks.push_back({mix64(seed + i), static_cast<uint8_t>(i % 4), static_cast<uint8_t>(i % 3)});
  }
  return marks;
}

ShadowHead made_head() {
  return {EvictionPolicy::kAuto, EvictionPolicy::kS3Fifo, 5, 1u << 20, 77, {1.5, 2.25}};
}

TEST(ShadowFileTest, FramesComeBackFromTheLastOne) {
  const TempFolder folder;
  const ShadowPlace place{folder / "SHADOWS", nullptr};
  EXPECT_FALSE(read_shadow_head(place).has_value());
  EXPECT_EQ(shadow_frames(place), 0u);
  const std::vector<ShadowMark> first = made_marks(kMarksPerFrame, 1);
  const std::vector<ShadowMark> second = made_marks(10, 9);
  ShadowWriter writer(place);
  ASSERT_TRUE(writer.begin(made_head()).ok());
  ASSERT_TRUE(writer.add(first).ok());
  EXPECT_FALSE(read_shadow_head(place).has_value()) << "it is not there before it is whole";
  ASSERT_TRUE(writer.add(second).ok());
  ASSERT_TRUE(writer.finish().ok());
  const auto head = read_shadow_head(place);
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->leader, EvictionPolicy::kS3Fifo);
  EXPECT_EQ(head->capacity_blocks, 77u);
  EXPECT_EQ(head->scores.s3_fifo, 2.25);
  EXPECT_EQ(shadow_frames(place), 2u);
  EXPECT_EQ(read_shadow_frame(place, 1), second);
  EXPECT_EQ(read_shadow_frame(place, 0), first);
  EXPECT_FALSE(read_shadow_frame(place, 2).has_value());
}

TEST(ShadowFileTest, AFileThatWasNotFinishedLeavesTheOldOne) {
  const TempFolder folder;
  const ShadowPlace place{folder / "SHADOWS", nullptr};
  {
    ShadowWriter old(place);
    ASSERT_TRUE(old.begin(made_head()).ok() && old.add(made_marks(3, 1)).ok());
    ASSERT_TRUE(old.finish().ok());
    ShadowWriter cut_short(place);
    ASSERT_TRUE(cut_short.begin(made_head()).ok());
  }
  EXPECT_EQ(read_shadow_frame(place, 0), made_marks(3, 1));
}

TEST(ShadowFileTest, SealedItOpensWithItsOwnKeysAlone) {
  const TempFolder folder;
  VaultOptions options;
  options.store = folder.path();
  auto vault = Vault::create(options, SecretKey::random(), HashSecret{});
  ASSERT_TRUE(vault.ok()) << vault.error().message;
  const ShadowPlace place{folder / "SHADOWS", std::shared_ptr<ValueSealer>(std::move(*vault))};
  const std::vector<ShadowMark> first = made_marks(kMarksPerFrame, 1);
  const std::vector<ShadowMark> second = made_marks(10, 9);
  ShadowWriter writer(place);
  ASSERT_TRUE(writer.begin(made_head()).ok() && writer.add(first).ok() && writer.add(second).ok());
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_TRUE(read_shadow_head(place).has_value());
  EXPECT_EQ(shadow_frames(place), 2u);
  EXPECT_EQ(read_shadow_frame(place, 0), first);
  EXPECT_EQ(read_shadow_frame(place, 1), second);
  EXPECT_FALSE(read_shadow_head({place.path, nullptr}).has_value());
  const std::string id(reinterpret_cast<const char*>(&first[0].id), sizeof first[0].id);
  EXPECT_EQ(read_file(place.path).find(id), std::string::npos) << "in clear";
}

TEST(ShadowFileTest, AChangedByteIsNeverBelieved) {
  const std::string head = encode_shadow_head(made_head());
  const std::string frame = encode_shadow_frame(3, made_marks(5, 2));
  ASSERT_EQ(head.size(), kShadowHeadBytes);
  ASSERT_TRUE(decode_shadow_head(head).has_value());
  ASSERT_TRUE(decode_shadow_frame(3, frame).has_value());
  EXPECT_FALSE(decode_shadow_frame(2, frame).has_value()) << "it is another place's";
  for (size_t bit = 0; bit < 8 * head.size(); ++bit) {
    std::string changed = head;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(decode_shadow_head(changed).has_value()) << bit;
  }
  for (size_t bit = 0; bit < 8 * frame.size(); ++bit) {
    std::string changed = frame;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(decode_shadow_frame(3, changed).has_value()) << bit;
  }
  for (size_t size = 0; size < frame.size(); ++size) {
    EXPECT_FALSE(decode_shadow_frame(3, frame.substr(0, size)).has_value());
  }
}

}  // namespace
}  // namespace ember
