// One request after another, across two lives of the engine.
#include "engine/runtime/engine.h"

#include "tests/engine/runtime/engine_harness.h"
#include "tests/support/temp_folder.h"

namespace ember {
namespace {

TEST(EngineTest, TheSecondLifeRestoresFromDiskAndComputesOneToken) {
  const TempFolder folder;
  const Request request = small_request(150, 1, 12);
  Outcome first;
  {
    auto engine = must_open(small_options(folder / "store"));
    first = engine->run(request);
    ASSERT_TRUE(first.status.ok()) << first.status.error().message;
    EXPECT_EQ(first.computed_tokens, 150u);
    EXPECT_TRUE(engine->make_durable());
  }
  auto engine = must_open(small_options(folder / "store"));
  const Outcome second = engine->run(request);
  EXPECT_EQ(second.token_ids, first.token_ids);
  EXPECT_EQ(second.computed_tokens, 1u);
  EXPECT_EQ(second.restore.restored_tokens[static_cast<size_t>(Tier::kDisk)], 149u);
  EXPECT_EQ(second.restore.total() + second.computed_tokens, second.prompt_tokens);
}

TEST(EngineTest, WithoutTheCacheNothingIsReadOrLeft) {
  const TempFolder folder;
  auto engine = must_open(small_options(folder / "store"));
  Request request = small_request(100, 2, 4);
  request.use_cache = false;
  const Outcome first = engine->run(request);
  const Outcome second = engine->run(request);
  EXPECT_EQ(second.computed_tokens, 100u);
  EXPECT_EQ(second.token_ids, first.token_ids);
  EXPECT_EQ(engine->cache().stats().indexed_blocks, 0u);
}

TEST(EngineTest, AnAnswerThatIsCutAndFedAgainGoesOnWithTheSameDraws) {
  auto engine = must_open(small_options(""));
  Request whole = small_request(40, 3, 30);
  whole.temperature = 1.0f;
  whole.seed = 77;
  const Outcome uncut = engine->run(whole);
  ASSERT_GT(uncut.token_ids.size(), 12u);
  Request rest = whole;
  rest.prompt.insert(rest.prompt.end(), uncut.token_ids.begin(), uncut.token_ids.begin() + 10);
  rest.max_tokens = 20;
  const Outcome resumed = engine->run(rest);
  EXPECT_EQ(resumed.token_ids,
            std::vector<TokenId>(uncut.token_ids.begin() + 10, uncut.token_ids.end()));
  Request other = whole;
  other.seed = 78;
  EXPECT_NE(engine->run(other).token_ids, uncut.token_ids);
}

TEST(EngineTest, ThePromptsProgressIsTold) {
  EngineOptions options = small_options("");
  options.chunk_tokens = 32;
  std::vector<double> told;
  options.progress = [&told](std::string_view what, double done) {
    if (what == "prompt") told.push_back(done);
  };
  auto engine = must_open(options);
  engine->run(small_request(80, 5, 3));
  EXPECT_EQ(told, (std::vector<double>{0.4, 0.8, 1.0}));
}

TEST(EngineTest, TokensOutsideTheVocabularyAreNamed) {
  auto engine = must_open(small_options(""));
  Request request = small_request(3, 4, 1);
  request.prompt[1] = 320;
  const Outcome outcome = engine->run(request);
  ASSERT_FALSE(outcome.status.ok());
  EXPECT_NE(outcome.status.error().message.find("token 320"), std::string::npos);
}

TEST(EngineTest, AContextBeyondTheModelsIsRefused) {
  EngineOptions options = small_options("");
  options.context_tokens = 257;
  auto engine = Engine::open(options);
  ASSERT_FALSE(engine.ok());
  EXPECT_NE(engine.error().message.find("257"), std::string::npos);
  EXPECT_NE(engine.error().message.find("256"), std::string::npos);
}

}  // namespace
}  // namespace ember
