// Simd: the choice of a level at run time.
#include "kernels/simd.h"

#include <atomic>

namespace ember {
namespace {

std::atomic<const Simd*> forced_level{nullptr};

const Simd& best_level() {
  if (const Simd* level = avx512_simd()) return *level;
  if (const Simd* level = avx2_simd()) return *level;
  return scalar_simd();
}

}  // namespace

const Simd& simd() {
  const Simd* forced = forced_level.load(std::memory_order_relaxed);
  if (forced != nullptr) return *forced;
  static const Simd& best = best_level();
  return best;
}

void set_simd_level_for_test(const Simd* level) { forced_level = level; }

}  // namespace ember
