// Index bench: match of a 128k-token prompt, insert and hashing, beside the machine's memory speed.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/prng.h"
#include "prefix_index/radix_index.h"

namespace ember {
namespace {

using Tokens = std::vector<TokenId>;

constexpr size_t kPromptTokens = 128 * 1024;
constexpr uint32_t kSpan = kDefaultBlockTokens;
constexpr size_t kConversations = 64;  // beside the prompt, each of 2 blocks of its own or more
constexpr uint64_t kBuild = 1;

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median_seconds(int runs, const std::function<void()>& before,
                      const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    before();
    times.push_back(seconds(work));
  }
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[static_cast<size_t>(runs / 2)];
}

Tokens random_tokens(Prng& random, size_t count) {
  Tokens tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random.below(128'000));
  return tokens;
}

// Sends everything else out of the caches.
class CacheSweep {
 public:
  void operator()() {
    for (uint8_t& byte : bytes_) ++byte;
  }

 private:
  std::vector<uint8_t> bytes_ = std::vector<uint8_t>(size_t{96} << 20);
};

BlockId insert_all(RadixIndex& index, const BlockHasher& hasher, const Tokens& tokens) {
  BlockId last = kNoBlock;
  BlockHash hash = hasher.root();
  for (size_t at = 0; at + kSpan <= tokens.size(); at += kSpan) {
    const TokenSpan block = TokenSpan(tokens).subspan(at, kSpan);
    hash = hasher.next(hash, block);
    last = index.insert(kSharedScope, last, block, hash, kBuild, 1);
    index.set_place(last, Tier::kDisk, 1);
  }
  return last;
}

// Conversations that share a random part of the prompt and then go their own way, so that the
// prompt's chain is cut into many runs.
void insert_branches(RadixIndex& index, const BlockHasher& hasher, const Tokens& prompt,
                     Prng& random) {
  for (size_t i = 0; i < kConversations; ++i) {
    const size_t shared = kSpan * random.below(prompt.size() / kSpan);
    Tokens tokens(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(shared));
    const Tokens own = random_tokens(random, kSpan * (2 + random.below(30)));
    tokens.insert(tokens.end(), own.begin(), own.end());
    insert_all(index, hasher, tokens);
  }
}

void print_match(const char* name, double match, double bound) {
  std::printf("match, %-28s %8.1f us   %5.1f GB/s of tokens   %3.0f %% of the memcmp bound\n", name,
              match * 1e6, static_cast<double>(kPromptTokens * sizeof(TokenId)) / match / 1e9,
              100 * bound / match);
}

double measure_memcpy(CacheSweep& sweep) {
  const std::vector<uint8_t> from(size_t{64} << 20, 1);
  std::vector<uint8_t> to(from.size());
  const double time =
      median_seconds(7, sweep, [&] { std::memcpy(to.data(), from.data(), from.size()); });
  EMBER_CHECK(to.back() == 1, "memcpy copies");
  return static_cast<double>(from.size()) / time / 1e9;
}

void run_match(const RadixIndex& index, ScopeId scope, const Tokens& prompt, CacheSweep& sweep,
               const char* name) {
  const Tokens copy = prompt;
  const auto match = [&] {
    const PrefixMatch found = index.match(scope, prompt, prompt.size() - 1, kBuild);
    EMBER_CHECK(found.tokens == prompt.size() - 1, "the whole prompt is known");
  };
  const auto compare = [&] {
    EMBER_CHECK(std::memcmp(copy.data(), prompt.data(), prompt.size() * sizeof(TokenId)) == 0,
                "a copy is equal");
  };
  const auto nothing = [] {};
  const std::string label(name);
  print_match((label + ", warm").c_str(), median_seconds(301, nothing, match),
              median_seconds(301, nothing, compare));
  print_match((label + ", cold caches").c_str(), median_seconds(31, std::ref(sweep), match),
              median_seconds(31, std::ref(sweep), compare));
}

void run() {
  CacheSweep sweep;
  Prng random(1);
  HashSecret secret;
  for (uint8_t& byte : secret) byte = static_cast<uint8_t>(random());
  const BlockHasher hasher(secret, NamespaceHash{}, "shared");
  const Tokens prompt = random_tokens(random, kPromptTokens);
  std::printf("memcpy: %.1f GB/s (64 MiB, cold)\n", measure_memcpy(sweep));
  std::printf("prompt: %zu tokens, %zu blocks of %u\n", kPromptTokens, kPromptTokens / kSpan,
              kSpan);

  BlockHash tip;
  const double hashing = median_seconds(
      31, [] {},
      [&] {
        tip = hasher.root();
        for (size_t at = 0; at < prompt.size(); at += kSpan) {
          tip = hasher.next(tip, TokenSpan(prompt).subspan(at, kSpan));
        }
      });
  const double blocks = static_cast<double>(kPromptTokens / kSpan);
  std::printf("hashing: %.1f us for the prompt, %.0f ns a block\n", hashing * 1e6,
              hashing / blocks * 1e9);

  const double building = median_seconds(
      15, [] {},
      [&] {
        RadixIndex index;
        insert_all(index, hasher, prompt);
        EMBER_CHECK(index.find(tip) != kNoBlock, "the last block is known by its hash");
      });
  std::printf("insert: %.1f us for the prompt, %.2f million blocks/s without hashing\n",
              building * 1e6, blocks / std::max(building - hashing, 1e-9) / 1e6);

  RadixIndex index;
  insert_all(index, hasher, prompt);
  run_match(index, kSharedScope, prompt, sweep, "one run");
  insert_branches(index, hasher, prompt, random);
  run_match(index, kSharedScope, prompt, sweep, "64 branches");
  std::printf("memory: %s for %zu blocks, %zu bytes a block\n",
              human_bytes(index.memory_bytes()).c_str(), index.size(),
              index.memory_bytes() / index.size());
}

}  // namespace
}  // namespace ember

int main() {
  ember::run();
  return 0;
}
