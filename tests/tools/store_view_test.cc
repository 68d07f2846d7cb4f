// The order of ls: parents right before their children, whatever the order they were read in.
#include "tools/commands/store_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/prng.h"

namespace ember {
namespace {

BlockHash hash_of(uint8_t number) {
  BlockHash hash;
  hash.bytes[0] = number;
  return hash;
}

TEST(StoreViewTest, SortByChainPutsParentsRightBeforeChildren) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Prng prng(seed);
    std::vector<RecordRow> rows;
    for (uint8_t i = 1; i <= 40; ++i) {
      RecordRow row;
      row.first.hash = hash_of(i);
      // Hash 0 is the root, and numbers above 40 are parents that are not there.
      const uint64_t parent = prng.below(i + 1u);
      row.first.parent = hash_of(parent == i ? 200 : static_cast<uint8_t>(parent));
      rows.push_back(row);
    }
    std::shuffle(rows.begin(), rows.end(), prng);
    sort_by_chain(rows);
    ASSERT_EQ(rows.size(), 40u);
    std::map<BlockHash, size_t> place;
    for (size_t i = 0; i < rows.size(); ++i) place[rows[i].first.hash] = i;
    ASSERT_EQ(place.size(), 40u);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto parent = place.find(rows[i].first.parent);
      if (parent != place.end()) {
        EXPECT_LT(parent->second, i);
      }
      // The row before is the parent, or belongs to the subtree of an older sibling.
      if (parent != place.end() && parent->second + 1 < i) {
        EXPECT_TRUE(rows[parent->second + 1].first.parent == rows[i].first.parent);
      }
    }
  }
}

TEST(StoreViewTest, ARecordThatIsItsOwnParentIsKept) {
  std::vector<RecordRow> rows(1);
  rows[0].first.hash = hash_of(1);
  rows[0].first.parent = hash_of(1);
  sort_by_chain(rows);
  EXPECT_EQ(rows.size(), 1u);
}

TEST(StoreViewTest, RecordsInACircleAreKept) {
  std::vector<RecordRow> rows(2);
  rows[0].first.hash = rows[1].first.parent = hash_of(1);
  rows[1].first.hash = rows[0].first.parent = hash_of(2);
  sort_by_chain(rows);
  EXPECT_EQ(rows.size(), 2u);
}

TEST(StoreViewTest, AnAbsentFolderHasNoBytes) { EXPECT_EQ(directory_bytes("/nowhere/at/all"), 0u); }

}  // namespace
}  // namespace ember
