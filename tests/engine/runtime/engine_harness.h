// Engine harness: opens engines for tests on the small models.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/prng.h"
#include "engine/runtime/engine.h"
#include "tests/support/rig.h"

namespace ember {

inline EngineOptions small_options(const std::string& store) {
  EngineOptions options;
  options.model_path = tiny_model_path();
  options.store_path = store;
  options.ram_bytes = uint64_t{128} << 20;
  options.disk_bytes = uint64_t{128} << 20;
  options.need_tokenizer = false;
  options.restore = RestorePolicy::kAlways;  // so small a model computes faster than a drive reads
  return options;
}

inline std::unique_ptr<Engine> must_open(const EngineOptions& options) {
  auto engine = Engine::open(options);
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  return std::move(engine).value();
}

// A prompt for the golden model, whose end token (1) no greedy answer to it is likely to draw.
inline Request small_request(size_t prompt_tokens, uint64_t seed, uint32_t max_tokens) {
  Prng prng(seed);
  Request request;
  for (size_t i = 0; i < prompt_tokens; ++i) {
    request.prompt.push_back(static_cast<TokenId>(2 + prng.below(300)));
  }
  request.max_tokens = max_tokens;
  return request;
}

}  // namespace ember
