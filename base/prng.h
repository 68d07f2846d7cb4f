// Prng: small seeded generators whose numbers are the same on every machine.
//
// Journey    none; sampling (counter-based) and tests (sequential)
// Source     SplitMix64's finaliser: Steele, Lea, Flood, OOPSLA 2014
#pragma once

#include <cstdint>

namespace ember {

// A bijective mix of 64 bits.
constexpr uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// The number that belongs to (seed, a, b): no state, so position p of a resumed answer draws the
// same number as in the run that was never cut.
constexpr uint64_t counter_random(uint64_t seed, uint64_t a, uint64_t b) {
  uint64_t x = mix64(seed + 0x9e3779b97f4a7c15ull);
  x = mix64(x ^ (a + 0x9e3779b97f4a7c15ull));
  return mix64(x ^ (b + 0x9e3779b97f4a7c15ull));
}

// A sequence for tests and simulations; satisfies UniformRandomBitGenerator.
class Prng {
 public:
  using result_type = uint64_t;
  explicit Prng(uint64_t seed) : state_(seed) {}
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  uint64_t operator()() {
    state_ += 0x9e3779b97f4a7c15ull;
    return mix64(state_);
  }
  // Uniform in [0, bound); bound > 0. The bias of the modulo is below 2^-32 for small bounds.
  uint64_t below(uint64_t bound) { return (*this)() % bound; }
  // Uniform in [0, 1).
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

}  // namespace ember
