// A cost note comes back as it was written; one that is damaged, of another version or impossible
// is nothing.
#include "store/cost_note.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/bytes.h"
#include "base/prng.h"
#include "tests/support/temp_folder.h"

namespace ember {
namespace {

CostNote some_note(uint64_t seed) {
  Prng prng(seed);
  CostNote note;
  note.chunk_tokens = 1 + prng.below(1000);
  note.context_tokens = prng.below(1'000'000);
  note.token_bytes = 1152 * prng.uniform();
  note.observations = prng.below(1'000'000);
  note.unix_us = static_cast<int64_t>(prng.below(uint64_t{1} << 50));
  for (double& value : note.compute) value = prng.uniform() * 1e4;
  for (auto& tier : note.restore) {
    for (double& value : tier) value = prng.uniform();
  }
  return note;
}

NamespaceHash some_name() {
  NamespaceHash name;
  name.bytes[3] = 7;
  return name;
}

std::string file_of(const TempFolder& folder) {
  return folder.path() + "/namespaces/" + some_name().hex() + ".costs";
}

std::string bytes_of(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

TEST(CostNoteTest, ComesBackAsWritten) {
  const TempFolder folder;
  EXPECT_FALSE(read_cost_note(folder.path(), some_name()));
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const CostNote note = some_note(seed);
    ASSERT_TRUE(write_cost_note(folder.path(), some_name(), note).ok());
    const std::optional<CostNote> back = read_cost_note(folder.path(), some_name());
    ASSERT_TRUE(back);
    EXPECT_EQ(back->chunk_tokens, note.chunk_tokens);
    EXPECT_EQ(back->context_tokens, note.context_tokens);
    EXPECT_EQ(back->token_bytes, note.token_bytes);
    EXPECT_EQ(back->observations, note.observations);
    EXPECT_EQ(back->unix_us, note.unix_us);
    EXPECT_EQ(back->compute, note.compute);
    EXPECT_EQ(back->restore, note.restore);
  }
  EXPECT_FALSE(read_cost_note(folder.path(), NamespaceHash{})) << "another namespace has its own";
}

TEST(CostNoteTest, AnyFlippedBitAndAnyOtherLengthIsNothing) {
  const TempFolder folder;
  ASSERT_TRUE(write_cost_note(folder.path(), some_name(), some_note(1)).ok());
  const std::string whole = bytes_of(file_of(folder));
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    put(file_of(folder), bytes);
    EXPECT_FALSE(read_cost_note(folder.path(), some_name())) << "bit " << bit;
  }
  for (size_t length = 0; length < whole.size(); ++length) {
    put(file_of(folder), whole.substr(0, length));
    EXPECT_FALSE(read_cost_note(folder.path(), some_name())) << length << " bytes";
  }
  put(file_of(folder), whole + std::string(1 << 20, 'x'));
  EXPECT_FALSE(read_cost_note(folder.path(), some_name()));
}

TEST(CostNoteTest, ImpossibleCostsAreNothing) {
  const TempFolder folder;
  for (const double value :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    CostNote note = some_note(1);
    note.compute[1] = value;
    ASSERT_TRUE(write_cost_note(folder.path(), some_name(), note).ok());
    EXPECT_FALSE(read_cost_note(folder.path(), some_name())) << value;
    note = some_note(1);
    note.restore[2][0] = value;
    ASSERT_TRUE(write_cost_note(folder.path(), some_name(), note).ok());
    EXPECT_FALSE(read_cost_note(folder.path(), some_name())) << value;
  }
}

}  // namespace
}  // namespace ember
