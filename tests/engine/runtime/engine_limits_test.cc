// The limits of an engine, each met: what is refused, by name, and what waits its turn.
#include <algorithm>
#include <map>
#include <set>

#include "engine/runtime/engine.h"
#include "tests/engine/runtime/engine_harness.h"

namespace ember {
namespace {

// An engine with requests on it: how many of each tenant, and of all, have ever run at once.
class Crowd {
 public:
  explicit Crowd(const EngineOptions& options) : engine_(must_open(options)) {}

  Status submit(Request request) {
    const std::string tenant = request.scope.tenant;
    request.on_prefill = [this, tenant, first = true](size_t, size_t) mutable {
      if (first) note_start(tenant);
      first = false;
    };
    request.on_done = [this, tenant](const Outcome& outcome) {
      EXPECT_TRUE(outcome.status.ok());
      --running_[tenant];
      ++done_;
    };
    const Result<uint64_t> id = engine_->scheduler().submit(std::move(request));
    if (!id.ok()) return id.error();
    ++submitted_;
    return {};
  }
  void must_submit(size_t prompt_tokens, uint32_t max_tokens, const std::string& tenant = "") {
    Request request = small_request(prompt_tokens, 1 + submitted_, max_tokens);
    request.scope.tenant = tenant;
    const Status status = submit(std::move(request));
    EXPECT_TRUE(status.ok()) << status.error().message;
  }
  Error refused(const std::string& tenant = "") {
    Request request = small_request(10, 1, 1);
    request.scope.tenant = tenant;
    const Status status = submit(std::move(request));
    if (!status.ok()) return status.error();
    ADD_FAILURE() << "it was taken";
    return {};
  }
  void run_all() {
    engine_->scheduler().run_until([this] { return done_ == submitted_; });
  }

  Engine& engine() { return *engine_; }
  size_t most() const { return most_; }
  size_t most_of(const std::string& tenant) { return most_of_[tenant]; }

 private:
  void note_start(const std::string& tenant) {
    most_of_[tenant] = std::max(most_of_[tenant], ++running_[tenant]);
    size_t all = 0;
    for (const auto& [name, count] : running_) all += count;
    most_ = std::max(most_, all);
  }

  std::unique_ptr<Engine> engine_;
  std::map<std::string, size_t> running_;
  std::map<std::string, size_t> most_of_;
  size_t most_ = 0;
  size_t submitted_ = 0;
  size_t done_ = 0;
};

TEST(EngineLimitsTest, RequestsBeyondTheBatchWait) {
  EngineOptions options = small_options("");
  options.limits.max_running = 3;
  Crowd crowd(options);
  for (int i = 0; i < 8; ++i) crowd.must_submit(20, 6);
  crowd.run_all();
  EXPECT_EQ(crowd.most(), 3u);
}

TEST(EngineLimitsTest, ALargeBatchRunsAtOnce) {
  EngineOptions options = small_options("");
  options.limits.max_running = 20;
  Crowd crowd(options);
  for (int i = 0; i < 20; ++i) crowd.must_submit(10, 30);
  crowd.run_all();
  EXPECT_EQ(crowd.most(), 20u);
}

TEST(EngineLimitsTest, OneTenantsRequestsBeyondItsShareOfTheBatchWait) {
  EngineOptions options = small_options("");
  options.limits.max_running_per_tenant = 2;
  Crowd crowd(options);
  for (int i = 0; i < 5; ++i) crowd.must_submit(20, 6, "acme");
  for (int i = 0; i < 2; ++i) crowd.must_submit(20, 6, "zenith");
  crowd.run_all();
  EXPECT_EQ(crowd.most_of("acme"), 2u);
  EXPECT_EQ(crowd.most_of("zenith"), 2u);
  EXPECT_EQ(crowd.most(), 4u);
}

TEST(EngineLimitsTest, TokensBeyondThoseInFlightWaitAndOneRequestPasses) {
  EngineOptions options = small_options("");
  options.limits.max_tokens_in_flight = 120;
  Crowd crowd(options);
  for (int i = 0; i < 6; ++i) crowd.must_submit(50, 10);
  crowd.must_submit(200, 5);
  crowd.run_all();
  EXPECT_EQ(crowd.most(), 2u);
}

TEST(EngineLimitsTest, AFullQueueAndAFullShareOfItAreNamed) {
  EngineOptions options = small_options("");
  options.limits.max_queued = 5;
  options.limits.max_queued_per_tenant = 2;
  Crowd crowd(options);
  for (const char* tenant : {"acme", "acme", "zenith"}) crowd.must_submit(10, 1, tenant);
  const Error share = crowd.refused("acme");
  EXPECT_EQ(share.code, ErrorCode::kBusy);
  EXPECT_NE(share.message.find("2 requests of this tenant"), std::string::npos) << share.message;
  for (const char* tenant : {"zenith", "lab"}) crowd.must_submit(10, 1, tenant);
  const Error full = crowd.refused("guest");
  EXPECT_EQ(full.code, ErrorCode::kBusy);
  EXPECT_NE(full.message.find("5 requests are waiting"), std::string::npos) << full.message;
  EXPECT_EQ(crowd.engine().run(small_request(10, 1, 1)).status.error().code, ErrorCode::kBusy);
  crowd.run_all();
  EXPECT_TRUE(crowd.engine().run(small_request(10, 1, 1)).status.ok()) << "there is room again";
}

TEST(EngineLimitsTest, PromptsTogetherHaveAStepsTokens) {
  EngineOptions options = small_options("");
  options.chunk_tokens = 16;
  options.trace_events = 4096;
  Crowd crowd(options);
  for (int i = 0; i < 3; ++i) crowd.must_submit(100, 1);
  crowd.run_all();
  std::multiset<uint64_t> steps;
  for (const TraceEvent& event : crowd.engine().trace()->events()) {
    if (event.kind == TraceKind::kStep) steps.insert(event.value);
  }
  EXPECT_EQ(*steps.rbegin(), 16u);
  EXPECT_EQ(steps.count(16), 18u) << "300 tokens: none of these steps had fewer than fit";
}

TEST(EngineLimitsTest, WhatCouldNeverWorkIsNamedBeforeAnythingIsOpened) {
  const auto refusal = [](auto set) {
    EngineOptions options = small_options("");
    options.model_path = "nowhere";
    set(options);
    const auto engine = Engine::open(options);
    EXPECT_EQ(engine.error().code, ErrorCode::kInvalidArgument);
    return engine.error().message;
  };
  EXPECT_EQ(refusal([](EngineOptions& options) { options.limits.max_running = 0; }),
            "max_running is 0, expected 1 to 1024");
  EXPECT_EQ(refusal([](EngineOptions& options) { options.limits.max_running = 1025; }),
            "max_running is 1025, expected 1 to 1024");
  EXPECT_EQ(refusal([](EngineOptions& options) { options.limits.max_queued = 0; }),
            "max_queued is 0, expected 1 to 65536");
  EXPECT_EQ(refusal([](EngineOptions& options) { options.chunk_tokens = 0; }),
            "chunk_tokens is 0, expected 1 to 65536");
}

}  // namespace
}  // namespace ember
