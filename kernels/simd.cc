// Simd: the choice of a level at run time.
#include "kernels/simd.h"

#include <atomic>

namespace ember {
namespace {

std::atomic<const Simd*> forced_level{nullptr};

const Simd& best_level() {
  const Simd* avx2 = avx2_simd();
  return avx2 != nullptr ? *avx2 : scalar_simd();
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
