// Buckets that grow one at a time, or many at once, beside std::unordered_multimap.
#include "prefix_index/hash_buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/prng.h"

namespace ember {
namespace {

enum class Ref : uint32_t {};
constexpr Ref kNoRef{0xffffffffu};

// Entries with the links that the buckets' owner keeps.
class Chains {
 public:
  void reach(size_t entries) {
    buckets_.reach(
        entries, [this](Ref ref) -> Ref& { return links_[static_cast<size_t>(ref)]; },
        [this](Ref ref) { return hashes_[static_cast<size_t>(ref)]; });
  }
  void add(size_t hash) {
    reach(hashes_.size() + 1);
    hashes_.push_back(hash);
    const Ref ref{static_cast<uint32_t>(hashes_.size() - 1)};
    links_.push_back(std::exchange(buckets_.head(hash), ref));
  }
  // All entries of the chain that a hash belongs to.
  std::vector<Ref> chain(size_t hash) const {
    std::vector<Ref> found;
    for (Ref ref = buckets_.head(hash); ref != kNoRef; ref = links_[static_cast<size_t>(ref)]) {
      found.push_back(ref);
    }
    return found;
  }
  size_t buckets() const { return buckets_.size(); }
  const std::vector<size_t>& hashes() const { return hashes_; }

 private:
  HashBuckets<Ref, kNoRef> buckets_;
  std::vector<size_t> hashes_;
  std::vector<Ref> links_;
};

void expect_each_found_once(const Chains& chains) {
  for (size_t i = 0; i < chains.hashes().size(); ++i) {
    const Ref wanted{static_cast<uint32_t>(i)};
    const std::vector<Ref> chain = chains.chain(chains.hashes()[i]);
    ASSERT_EQ(std::count(chain.begin(), chain.end(), wanted), 1) << "entry " << i;
  }
}

TEST(HashBucketsTest, EachEntryIsFoundWhileTheyGrowOneByOne) {
  Prng random(1);
  Chains chains;
  for (int i = 0; i < 3000; ++i) {
    chains.add(random.below(5) == 0 ? random.below(7) : random());  // some hashes meet
    EXPECT_EQ(chains.buckets(), chains.hashes().size());
    if (i % 61 == 0) expect_each_found_once(chains);
  }
  expect_each_found_once(chains);
}

TEST(HashBucketsTest, ManyBucketsAtOnceKeepWhatIsThere) {
  for (const size_t many : {2u, 3u, 100u, 127u, 128u, 129u, 5000u}) {
    Prng random(many);
    Chains chains;
    for (int i = 0; i < 40; ++i) chains.add(random());
    chains.reach(many);
    EXPECT_EQ(chains.buckets(), std::max<size_t>(40, many));
    expect_each_found_once(chains);
    for (int i = 0; i < 300; ++i) chains.add(random());
    expect_each_found_once(chains);
  }
}

TEST(HashBucketsTest, ChainsStayShort) {
  Prng random(2);
  Chains chains;
  for (int i = 0; i < 20'000; ++i) chains.add(random());
  size_t longest = 0;
  for (size_t hash : chains.hashes()) longest = std::max(longest, chains.chain(hash).size());
  EXPECT_LE(longest, 16u);
}

}  // namespace
}  // namespace ember
