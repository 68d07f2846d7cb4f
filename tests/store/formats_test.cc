// docs/formats.md says what the code writes: offsets, sizes, versions.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "store/disk/conversations_format.h"
#include "store/disk/disk_format.h"
#include "store/record.h"
#include "store/store_directory.h"

namespace ember {
namespace {

class FormatsTest : public testing::Test {
 protected:
  FormatsTest() {
    std::stringstream text;
    text << std::ifstream(std::string(EMBER_SOURCE_DIR) + "/docs/formats.md").rdbuf();
    text_ = text.str();
  }
  bool says(const std::string& words) const { return text_.find(words) != std::string::npos; }
  void expect_field(const std::string& name, size_t at, size_t bytes) const {
    const std::string row =
        "| " + name + " | " + std::to_string(at) + " | " + std::to_string(bytes) + " |";
    EXPECT_TRUE(says(row)) << row;
  }

  std::string text_;
};

#define EXPECT_FIELD(name, type, member) \
  expect_field(name, offsetof(type, member), sizeof(type::member))

TEST_F(FormatsTest, RecordHeadIsAsTheDocumentDrawsIt) {
  EXPECT_FIELD("magic `EMBK`", RecordHead, magic);
  EXPECT_FIELD("version", RecordHead, version);
  EXPECT_FIELD("flags (1: tail)", RecordHead, flags);
  EXPECT_FIELD("namespace", RecordHead, name_space);
  EXPECT_FIELD("block hash", RecordHead, hash);
  EXPECT_FIELD("parent hash", RecordHead, parent);
  EXPECT_FIELD("numerics build", RecordHead, numerics_build);
  EXPECT_FIELD("position", RecordHead, position);
  EXPECT_FIELD("token count", RecordHead, token_count);
  EXPECT_FIELD("epoch", RecordHead, epoch);
  EXPECT_FIELD("scope bytes", RecordHead, scope_bytes);
  EXPECT_FIELD("publisher bytes", RecordHead, publisher_bytes);
  EXPECT_FIELD("stream count", RecordHead, stream_count);
  EXPECT_FIELD("group count", RecordHead, group_count);
  EXPECT_FIELD("reserved", RecordHead, reserved);
}

TEST_F(FormatsTest, StreamsAndGroupsAreAsTheDocumentDrawsThem) {
  constexpr size_t kBody = sizeof(StreamHead);
  EXPECT_FIELD("kind (1: MLA row)", StreamHead, kind);
  EXPECT_FIELD("body bytes", StreamHead, body_bytes);
  expect_field("row values", kBody + offsetof(StreamBody, row_values), 4);
  expect_field("tokens a row", kBody + offsetof(StreamBody, tokens_per_row), 2);
  expect_field("lifetime (1: history, 2: state)", kBody + offsetof(StreamBody, lifetime), 1);
  expect_field("dtype", kBody + offsetof(StreamBody, dtype), 1);
  expect_field("scale rule", kBody + offsetof(StreamBody, scale_rule), 1);
  expect_field("reserved", kBody + offsetof(StreamBody, reserved), 3);
  EXPECT_FIELD("checksum of the raw bytes", GroupRow, checksum);
  EXPECT_FIELD("first layer", GroupRow, first_layer);
  EXPECT_FIELD("layers", GroupRow, layers);
  EXPECT_FIELD("raw bytes", GroupRow, raw_bytes);
  EXPECT_FIELD("stored bytes", GroupRow, stored_bytes);
  EXPECT_FIELD("codec (0: stored, 2: channel planes)", GroupRow, codec);
  EXPECT_FIELD("reserved", GroupRow, reserved);
  EXPECT_EQ(static_cast<unsigned>(CodecId::kStored), 0u);
  EXPECT_EQ(static_cast<unsigned>(CodecId::kChannelPlanes), 2u);
}

TEST_F(FormatsTest, RowsAndVersionsAreAsTheDocumentSays) {
  const auto bytes = [](const std::string& row) { return std::to_string(row.size()) + " bytes"; };
  EXPECT_TRUE(says("epoch row, " + bytes(encode_epoch("key", {}))));
  EXPECT_TRUE(says("touch record, " + bytes(encode_touch("key", {}))));
  EXPECT_EQ(data_key(1, {}, 0).size(), 4u + 16u + 2u);
  EXPECT_TRUE(says("Version " + std::to_string(kRecordVersion) + ": head, scope"));
  EXPECT_TRUE(says("Version " + std::to_string(kStoreVersion) + ". The checksum is the last"));
  EXPECT_TRUE(says("begin with their version, " + std::to_string(kConversationVersion) + ","));
  expect_field("form", 8, 4);
  expect_field("secret", 12, kHashSecretBytes);
  expect_field("checksum", 12 + kHashSecretBytes, 8);
}

}  // namespace
}  // namespace ember
