// Radix index, small states: every order in which small sets of blocks can come and go.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/prefix_index/naive_index.h"

namespace ember {
namespace {

using Path = std::vector<TokenId>;

// All token sequences over {0, 1} of the given length.
std::vector<Path> sequences(size_t length) {
  std::vector<Path> all = {{}};
  for (size_t i = 0; i < length; ++i) {
    std::vector<Path> longer;
    for (const Path& path : all) {
      for (TokenId token : {0, 1}) {
        longer.push_back(path);
        longer.back().push_back(token);
      }
    }
    all = longer;
  }
  return all;
}

// Every path of 1 to `length` tokens: full blocks at multiples of the span, tails elsewhere.
std::vector<Path> all_paths(size_t length) {
  std::vector<Path> all;
  for (size_t n = 1; n <= length; ++n) {
    const std::vector<Path> more = sequences(n);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

// An index and its model, built path by path.
class SmallState {
 public:
  explicit SmallState(uint32_t span) : span_(span), index_(span), model_(span) {}

  // Inserts the path's last block, and its full blocks before that where they are missing.
  void insert(const Path& path) {
    BlockId parent = kNoBlock;
    for (size_t begin = 0; begin < path.size(); begin += span_) {
      const size_t count = std::min<size_t>(span_, path.size() - begin);
      const TokenSpan tokens = TokenSpan(path).subspan(begin, count);
      const size_t before = index_.size();
      const BlockId block =
          index_.insert(kSharedScope, parent, tokens, BlockHash{}, 1, ++now_);
      if (index_.size() > before) add_to_model(block, TokenSpan(path).first(begin + count), count);
      parent = block;
    }
  }
  // Erases the path's last block if it is there and a leaf.
  void erase(const Path& path) {
    for (size_t i = 0; i < model_.blocks().size(); ++i) {
      const NaiveBlock& block = model_.blocks()[i];
      if (block.path != path || !model_.children_of(block).empty()) continue;
      index_.clear_place(block.id, Tier::kDisk);
      index_.erase(block.id);
      model_.blocks().erase(model_.blocks().begin() + static_cast<ptrdiff_t>(i));
      return;
    }
  }
  void compare(const std::vector<Path>& prompts) const {
    model_.expect_equal(index_);
    for (const Path& prompt : prompts) {
      model_.expect_same_match(index_, kSharedScope, prompt, prompt.size(), 1);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }

 private:
  void add_to_model(BlockId id, TokenSpan path, size_t count) {
    index_.set_place(id, Tier::kDisk, 7);
    NaiveBlock block;
    block.id = id;
    block.path.assign(path.begin(), path.end());
    block.token_count = static_cast<uint32_t>(count);
    block.build = 1;
    block.last_use = now_;
    block.place[static_cast<size_t>(Tier::kDisk)] = 7;
    model_.blocks().push_back(block);
  }

  const uint32_t span_;
  RadixIndex index_;
  NaiveIndex model_;
  uint64_t now_ = 0;
};

// Inserts every ordered choice of `size` paths, comparing at the end (each shorter order is the
// beginning of a longer one), then erases them in the same order, comparing after each.
void try_all_orders(uint32_t span, const std::vector<Path>& paths, size_t size,
                    const std::vector<Path>& prompts) {
  std::vector<size_t> choice(size, 0);
  for (bool more = true; more && !::testing::Test::HasFatalFailure();) {
    SmallState state(span);
    for (size_t i : choice) state.insert(paths[i]);
    state.compare(prompts);
    for (size_t i : choice) {
      state.erase(paths[i]);
      state.compare({});
    }
    more = false;
    for (size_t& digit : choice) {
      if (++digit < paths.size()) {
        more = true;
        break;
      }
      digit = 0;
    }
  }
}

TEST(RadixIndexSmallTest, EveryOrderOfThreePathsOfSpanTwo) {
  try_all_orders(2, all_paths(4), 3, sequences(5));
}

TEST(RadixIndexSmallTest, EveryOrderOfTwoPathsOfSpanThree) {
  try_all_orders(3, all_paths(6), 2, sequences(7));
}

TEST(RadixIndexSmallTest, EveryOrderOfFourPathsOfUpToTwoBlocks) {
  // Few paths, but each with a branch, a tail that agrees and a tail that does not.
  const std::vector<Path> paths = {{0, 0},       {0, 0, 1}, {0, 0, 1, 0}, {0, 0, 1, 1},
                                   {0, 0, 0, 0}, {0, 1},    {0},          {1, 1, 1, 1, 1}};
  try_all_orders(2, paths, 4, sequences(5));
}

TEST(RadixIndexSmallTest, AllPathsAtOnceInBothOrders) {
  std::vector<Path> paths = all_paths(6);
  for (const uint32_t span : {2u, 3u}) {
    SmallState up(span);
    for (const Path& path : paths) up.insert(path);
    up.compare(sequences(7));
    SmallState down(span);
    for (auto path = paths.rbegin(); path != paths.rend(); ++path) down.insert(*path);
    down.compare(sequences(7));
  }
}

}  // namespace
}  // namespace ember
