// Matmul by oneDNN: near to the plain form, the same bits on any team, and the portable bits where
// the library is not fit. The fp32 route runs on every machine.
#include "kernels/matmul_onednn.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/run_team.h"

namespace ember {
namespace {

struct Product {
  Product(size_t rows, size_t n, size_t k, DType in, DType out) {
    Prng random(rows * 31 + n);
    x = random_values(rows * k, in, random);
    w = random_values(n * k, in, random);
    y = std::vector<std::byte>(rows * n * dtype_bytes(out));
    params = MatmulParams{1, rows, n, k, x.data(), in, k, 0, w.data(), in, 0, y.data(), out, n, 0};
  }
  MatmulParams params;
  std::vector<std::byte> x, w, y;
};

constexpr size_t kColumns = 300, kInner = 264;

TEST(MatmulOnednnTest, IsNearToThePlainForm) {
  for (const DType in : {DType::kF32, DType::kBf16}) {
    for (const size_t rows : {size_t{1}, size_t{3}, size_t{17}, size_t{70}}) {
      Product fast(rows, kColumns, kInner, in, DType::kF32);
      Product plain(rows, kColumns, kInner, in, DType::kF32);
      run_on_team(fast.params, 2, matmul_onednn);
      matmul_reference(plain.params);
      for (size_t i = 0; i < rows * kColumns; ++i) {
        ASSERT_NEAR(value_of(fast.y, DType::kF32, i), value_of(plain.y, DType::kF32, i), 1e-4);
      }
    }
  }
}

TEST(MatmulOnednnTest, ARowHasTheSameBitsOnAnyTeamAndInAnyCompany) {
  for (const DType in : {DType::kF32, DType::kBf16}) {
    Product all(300, kColumns, kInner, in, DType::kF32);
    run_on_team(all.params, 1, matmul_onednn);
    Product team(300, kColumns, kInner, in, DType::kF32);
    run_on_team(team.params, 4, matmul_onednn);
    ASSERT_EQ(all.y, team.y);
    for (size_t rows = 1; rows < 300; rows += 13) {
      Product part(300, kColumns, kInner, in, DType::kF32);
      part.params.rows = rows;
      part.params.x = part.x.data() + (300 - rows) * kInner * dtype_bytes(in);
      run_on_team(part.params, 2, matmul_onednn);
      for (size_t i = 0; i < rows * kColumns; ++i) {
        ASSERT_EQ(value_of(part.y, DType::kF32, i),
                  value_of(all.y, DType::kF32, (300 - rows) * kColumns + i));
      }
    }
  }
}

TEST(MatmulOnednnTest, WhereItIsNotFitThePortableBitsComeOut) {
  for (const DType in : {DType::kF32, DType::kBf16}) {
    if (onednn_is_fit(kColumns, kInner, in, DType::kBf16)) continue;
    Product library(20, kColumns, kInner, in, DType::kBf16);
    Product portable(20, kColumns, kInner, in, DType::kBf16);
    run_on_team(library.params, 2, matmul_onednn);
    run_on_team(portable.params, 1);
    EXPECT_EQ(library.y, portable.y);
  }
}

TEST(MatmulOnednnTest, TheFamilyNamesVersionAndInstructions) {
  EXPECT_EQ(onednn_family().rfind("cpu-onednn-", 0), 0u);
  if (onednn_has_avx512()) {
    EXPECT_NE(onednn_family().find("avx512_core"), std::string::npos);
  }
}

}  // namespace
}  // namespace ember
