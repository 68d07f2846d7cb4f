// Matmul against the plain form, and the same bits whatever the rows, workers and level.
#include "kernels/matmul.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/simd.h"
#include "tests/kernels/run_team.h"

namespace ember {
namespace {

struct Case {
  size_t batch, rows, n, k;
  DType x, w, y;
};

struct Product {
  MatmulParams params;
  std::vector<std::byte> x, w, y;

  Product(const Case& c, uint64_t seed) {
    Prng random(seed);
    const size_t x_stride = c.k + 3;
    const size_t y_stride = c.n + 5;
    x = random_values(c.batch * c.rows * x_stride, c.x, random);
    w = random_values(c.batch * c.n * c.k + 1, c.w, random);
    y = std::vector<std::byte>(c.batch * c.rows * y_stride * dtype_bytes(c.y));
    params = MatmulParams{c.batch, c.rows,  c.n,   c.k,      x.data(), c.x,
                          x_stride, c.rows * x_stride, w.data(), c.w, c.n * c.k, y.data(),
                          c.y,     y_stride, c.rows * y_stride};
  }
  float at(size_t b, size_t t, size_t j) const {
    return value_of(y, params.y_dtype, b * params.y_batch_stride + t * params.y_stride + j);
  }
};

const DType kBoth[] = {DType::kF32, DType::kBf16};

std::vector<Case> cases() {
  std::vector<Case> all;
  const size_t shapes[][4] = {{1, 1, 5, 7},    {1, 3, 33, 64},  {2, 4, 25, 130}, {1, 7, 48, 257},
                              {1, 9, 31, 513}, {3, 65, 50, 96}, {1, 70, 3, 300}, {1, 2, 1, 1},
                              {1, 130, 27, 8}};
  for (const auto& s : shapes) {
    for (const DType x : kBoth) {
      for (const DType w : kBoth) {
        all.push_back(Case{s[0], s[1], s[2], s[3], x, w, DType::kF32});
        all.push_back(Case{s[0], s[1], s[2], s[3], x, w, DType::kBf16});
      }
    }
  }
  return all;
}

TEST(MatmulTest, IsNearToThePlainForm) {
  uint64_t seed = 1;
  for (const Case& c : cases()) {
    Product fast(c, seed);
    Product plain(c, seed++);
    run_on_team(fast.params, 1);
    matmul_reference(plain.params);
    const double ulp = c.y == DType::kF32 ? 1e-6 : 1.0 / 128;
    const double room = 1e-6 * static_cast<double>(c.k);
    for (size_t b = 0; b < c.batch; ++b) {
      for (size_t t = 0; t < c.rows; ++t) {
        for (size_t j = 0; j < c.n; ++j) {
          const double expected = static_cast<double>(plain.at(b, t, j));
          ASSERT_NEAR(static_cast<double>(fast.at(b, t, j)), expected,
                      room + ulp * std::abs(expected))
              << "rows " << c.rows << " n " << c.n << " k " << c.k;
        }
      }
    }
  }
}

TEST(MatmulTest, LevelsAndWorkersGiveTheSameBits) {
  uint64_t seed = 100;
  for (const Case& c : cases()) {
    Product one(c, seed);
    run_on_team(one.params, 1);
    for (const int workers : {2, 4}) {
      Product many(c, seed);
      run_on_team(many.params, workers);
      ASSERT_EQ(one.y, many.y) << workers << " workers";
    }
    for (const Simd* level : lower_levels()) {
      Product lower(c, seed);
      run_at_level(level, lower.params);
      ASSERT_EQ(one.y, lower.y) << level->family << ", k " << c.k << " rows " << c.rows;
    }
    ++seed;
  }
}

TEST(MatmulTest, ARowDependsOnItselfAlone) {
  for (const DType w : kBoth) {
    const Case whole{1, 130, 50, 600, DType::kBf16, w, DType::kF32};
    Product all(whole, 7);
    run_on_team(all.params, 1);
    for (size_t rows = 1; rows <= 130; rows += rows < 20 ? 1 : 11) {
      for (const size_t first : {size_t{0}, 130 - rows}) {
        Product part(whole, 7);
        part.params.rows = rows;
        part.params.x = part.x.data() + first * part.params.x_stride * 2;
        run_on_team(part.params, rows % 2 == 0 ? 2 : 1);
        for (size_t t = 0; t < rows; ++t) {
          for (size_t j = 0; j < whole.n; ++j) {
            ASSERT_EQ(part.at(0, t, j), all.at(0, first + t, j)) << rows << " rows from " << first;
          }
        }
      }
    }
  }
}

TEST(MatmulTest, WeightsMayBeUnaligned) {
  const Case c{1, 9, 30, 40, DType::kF32, DType::kBf16, DType::kF32};
  Product aligned(c, 3);
  Product shifted(c, 3);
  std::vector<std::byte> odd(aligned.w.size() + 1);
  std::copy(aligned.w.begin(), aligned.w.end(), odd.begin() + 1);
  shifted.params.w = odd.data() + 1;
  for (const size_t rows : {size_t{1}, size_t{9}}) {
    aligned.params.rows = shifted.params.rows = rows;
    run_on_team(aligned.params, 1);
    run_on_team(shifted.params, 1);
    EXPECT_EQ(aligned.y, shifted.y);
  }
}

}  // namespace
}  // namespace ember
