// Run team: an operation on a team of n workers, as the CPU device would run it.
#pragma once

#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "base/prng.h"
#include "kernels/compute_team.h"
#include "kernels/program.h"
#include "kernels/simd.h"
#include "kernels/solo_team.h"

namespace ember {

// Runs one operation on `workers` threads and waits for it.
inline void run_on_team(const Op& op, int workers, MatmulFunction matmul = matmul_cpu) {
  if (workers == 1) {
    SoloTeam team;
    run_op(op, team, matmul);
    return;
  }
  TicketBoard board;
  ComputeTeam team(workers, matmul, board);
  Program program;
  program.add(op);
  const Ticket ticket = board.open(false);
  team.enqueue(ticket, program);
  EMBER_CHECK(board.wait_for(ticket).ok(), "an operation does not fail");
}

// Levels that this CPU has beside the one in use, which is the best.
inline std::vector<const Simd*> lower_levels() {
  std::vector<const Simd*> levels = {&scalar_simd()};
  if (avx2_simd() != nullptr && avx2_simd() != &simd()) levels.push_back(avx2_simd());
  return levels;
}

// The same at one of them.
inline void run_at_level(const Simd* level, const Op& op) {
  set_simd_level_for_test(level);
  run_on_team(op, 1);
  set_simd_level_for_test(nullptr);
}

// Values in (-1, 1) of either dtype, as bytes.
inline std::vector<std::byte> random_values(size_t count, DType dtype, Prng& random,
                                            float amplitude = 1.0f) {
  std::vector<std::byte> bytes(count * dtype_bytes(dtype));
  for (size_t i = 0; i < count; ++i) {
    const float value = amplitude * static_cast<float>(2 * random.uniform() - 1);
    const bf16 half = to_bf16(value);
    if (dtype == DType::kF32) {
      std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
    } else {
      std::memcpy(bytes.data() + i * sizeof half, &half, sizeof half);
    }
  }
  return bytes;
}

// Element i of an array of either dtype.
inline float value_of(const std::vector<std::byte>& bytes, DType dtype, size_t i) {
  if (dtype == DType::kF32) return load_unaligned<float>(bytes.data() + i * 4);
  return to_float(load_unaligned<bf16>(bytes.data() + i * 2));
}

}  // namespace ember
