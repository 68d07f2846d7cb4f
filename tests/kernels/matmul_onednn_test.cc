// Matmul by oneDNN: near to the plain form, the same bits on any team, and the portable bits where
// the library is not fit. The fp32 route runs on every machine.
#include "kernels/matmul_onednn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>

#include "kernels/kernel_choice.h"
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

// Whatever the library is, the first rows have the bits of our own kernel.
TEST(MatmulOnednnTest, OwnRowsAreOurKernels) {
  const KernelChoice kernels = choose_kernels(true);
  Product own(20, kColumns, kInner, DType::kBf16, DType::kBf16);
  run_on_team(own.params, 1);
  Product library(20, kColumns, kInner, DType::kBf16, DType::kBf16);
  run_on_team(library.params, 1, matmul_onednn);
  for (const size_t rows : {size_t{0}, size_t{3}, size_t{20}}) {
    Product mixed(20, kColumns, kInner, DType::kBf16, DType::kBf16);
    mixed.params.own_rows = rows;
    run_on_team(mixed.params, 2, kernels.matmul);
    for (size_t i = 0; i < 20 * kColumns; ++i) {
      const bool ours = i / kColumns < rows || !onednn_has_avx512();
      ASSERT_EQ(value_of(mixed.y, DType::kBf16, i),
                value_of(ours ? own.y : library.y, DType::kBf16, i));
    }
  }
}

// Inner sizes and output widths of the linear layers of DeepSeek-V2-Lite, V2, V3, Kimi-K2,
// Moonlight, GLM-4.7-Flash and Youtu: hidden, ranks, heads by their widths, feed-forwards.
TEST(MatmulOnednnTest, EveryShapeOfTheFamilyIsTheSameInAnyCompany) {
  if (!onednn_has_avx512()) GTEST_SKIP() << "no AVX-512";
  const std::initializer_list<size_t> inner_sizes = {
      128, 512, 768, 1408, 1536, 2048, 2304, 3072, 5120, 6144, 7168, 10944, 12288, 16384, 18432};
  for (const size_t k : inner_sizes) {
    for (const size_t n : {size_t{256}, size_t{64}, size_t{192}}) {  // a block, ragged last ones
      for (const DType out : {DType::kBf16, DType::kF32}) {
        ASSERT_TRUE(onednn_is_fit(n, k, DType::kBf16, out)) << n << " x " << k;
      }
      Product all(70, n, k, DType::kBf16, DType::kF32);
      run_on_team(all.params, 2, matmul_onednn);
      for (const size_t rows : {size_t{1}, size_t{7}, size_t{64}}) {
        Product part(70, n, k, DType::kBf16, DType::kF32);
        part.params.rows = rows;
        part.params.x = part.x.data() + (70 - rows) * k * sizeof(bf16);
        run_on_team(part.params, 1, matmul_onednn);
        for (size_t i = 0; i < rows * n; ++i) {
          ASSERT_EQ(value_of(part.y, DType::kF32, i),
                    value_of(all.y, DType::kF32, (70 - rows) * n + i))
              << n << " x " << k << ", " << rows << " rows";
        }
      }
    }
  }
}

// In a process of its own: the library looks once.
TEST(MatmulOnednnDeathTest, LessOfTheCpuIsAnotherFamily) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto say_family = [] {
    std::fputs(("family " + choose_kernels(true).family + "\n").c_str(), stderr);
    std::exit(0);
  };
  const std::string own = simd().family;
  ::setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
  EXPECT_EXIT(say_family(), testing::ExitedWithCode(0), "family " + own + "\n");
  ::setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE", 1);
  const std::string lower = onednn_has_avx512() ? "-avx512_core\n" : "family " + own + "\n";
  EXPECT_EXIT(say_family(), testing::ExitedWithCode(0), lower);
  ::unsetenv("ONEDNN_MAX_CPU_ISA");
}

TEST(MatmulOnednnTest, TheFamilyNamesVersionAndInstructions) {
  EXPECT_EQ(onednn_family().rfind("onednn-", 0), 0u);
  if (onednn_has_avx512()) {
    EXPECT_NE(onednn_family().find("avx512_core"), std::string::npos);
  }
}

}  // namespace
}  // namespace ember
