// Tenant's conversations: what one owner can read, write and learn.
#include "store/tenant_conversations.h"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace ember {
namespace {

Conversation head_of(const std::string& id, const std::string& system) {
  Conversation head;
  head.id = id;
  head.system = system;
  head.template_name = "deepseek_v3";
  return head;
}

Turn turn_of(const std::string& user) {
  Turn turn;
  turn.user = user;
  return turn;
}

constexpr const char* kAnnas = "00000000000000a1";
constexpr const char* kNobodys = "00000000000000ff";

TEST(TenantConversationsTest, AConversationIsItsOwnersAlone) {
  const TempFolder folder;
  ConversationsOptions options;
  options.directory = folder / "conversations";
  options.limit_bytes = 16u << 20;
  for (bool reopened : {false, true}) {
    auto opened = Conversations::open(options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    TenantConversations anna(**opened, "anna");
    TenantConversations ben(**opened, "ben");
    TenantConversations single(**opened, "");
    if (!reopened) {
      ASSERT_TRUE(anna.put_head(head_of(kAnnas, "hers")).ok());
      ASSERT_TRUE(anna.put_turn(kAnnas, 0, turn_of("hello")).ok());
    }
    for (TenantConversations* other : {&ben, &single}) {
      EXPECT_TRUE(other->list()->empty());
      // Word for word as for one that does not exist.
      const std::string hers = other->load(kAnnas).error().message;
      const std::string none = other->load(kNobodys).error().message;
      EXPECT_EQ(hers, "there is no conversation " + std::string(kAnnas));
      EXPECT_EQ(none, "there is no conversation " + std::string(kNobodys));
      EXPECT_EQ(other->put_turn(kAnnas, 0, turn_of("mine now")).error().message, hers);
      EXPECT_EQ(other->put_head(head_of(kAnnas, "mine now")).error().message, hers);
      EXPECT_EQ(other->remove(kAnnas).error().message, hers);
    }
    EXPECT_FALSE(anna.put_head(head_of("no id", "")).ok());
    ASSERT_EQ(anna.list()->size(), 1u);
    const Result<Conversation> whole = anna.load(kAnnas);
    ASSERT_TRUE(whole.ok());
    EXPECT_EQ(whole->scope, "anna");
    EXPECT_EQ(whole->system, "hers");
    ASSERT_EQ(whole->turns.size(), 1u);
    EXPECT_EQ(whole->turns[0].user, "hello");
    if (!reopened) continue;
    ASSERT_TRUE(anna.put_head(head_of(kAnnas, "changed")).ok());
    ASSERT_TRUE(anna.remove(kAnnas).ok());
    EXPECT_TRUE(anna.list()->empty());
    EXPECT_TRUE(ben.put_head(head_of(kAnnas, "free again")).ok());
  }
}

}  // namespace
}  // namespace ember
