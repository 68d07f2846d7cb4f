// Simd lanes: the kernels of simd.h written once over a vector type V of 8 fp32 lanes; those in
// which lanes never meet also over one of 16.
//
// Journey    simd -> [simd_lanes] -> one instantiation for each instruction set
// Invariant  no operation here may round differently in two V's; V lives in an unnamed namespace of
//            its file, so that code for one instruction set never replaces another's
// Not here   V itself (simd_scalar.cc, simd_avx2.cc)
#pragma once

#include <cstddef>

#include "base/dtype.h"
#include "kernels/simd.h"
#include "kernels/simd_lanes_dot.h"

namespace ember::lanes {

template <class V, size_t R, size_t C>
void value_tile(const ValueBlock& b, size_t r, size_t j) {
  V acc[R][C];
  EMBER_UNROLL
  for (size_t i = 0; i < R; ++i) {
    const float* from = b.acc + (r + i) * b.acc_stride + j;
    EMBER_UNROLL
    for (size_t c = 0; c < C; ++c) acc[i][c] = V::load(from + c * V::kLanes);
  }
  for (size_t t = 0; t < b.tokens; ++t) {
    V v[C];
    EMBER_UNROLL
    for (size_t c = 0; c < C; ++c) v[c] = V::load(b.v + t * b.v_stride + j + c * V::kLanes);
    EMBER_UNROLL
    for (size_t i = 0; i < R; ++i) {
      const V p = V::broadcast(b.p[(r + i) * b.p_stride + t]);
      EMBER_UNROLL
      for (size_t c = 0; c < C; ++c) acc[i][c] = V::fma(p, v[c], acc[i][c]);
    }
  }
  EMBER_UNROLL
  for (size_t i = 0; i < R; ++i) {
    float* to = b.acc + (r + i) * b.acc_stride + j;
    EMBER_UNROLL
    for (size_t c = 0; c < C; ++c) acc[i][c].store(to + c * V::kLanes);
  }
}

// The last columns, fewer than a vector.
template <class V>
void value_edge(const ValueBlock& b, size_t j) {
  const size_t n = b.width - j;
  for (size_t r = 0; r < b.rows; ++r) {
    V acc = V::load_part(b.acc + r * b.acc_stride + j, n);
    for (size_t t = 0; t < b.tokens; ++t) {
      const V p = V::broadcast(b.p[r * b.p_stride + t]);
      acc = V::fma(p, V::load_part(b.v + t * b.v_stride + j, n), acc);
    }
    acc.store_part(b.acc + r * b.acc_stride + j, n);
  }
}

template <class V, size_t C>
void value_columns(const ValueBlock& b, size_t j) {
  size_t r = 0;
  for (; r + 4 <= b.rows; r += 4) value_tile<V, 4, C>(b, r, j);
  for (; r < b.rows; ++r) value_tile<V, 1, C>(b, r, j);
}

template <class V>
void accumulate(const ValueBlock& block) {
  size_t j = 0;
  constexpr size_t kStep = V::kValueVectors * V::kLanes;
  for (; j + kStep <= block.width; j += kStep) value_columns<V, V::kValueVectors>(block, j);
  for (; j + V::kLanes <= block.width; j += V::kLanes) value_columns<V, 1>(block, j);
  if (j < block.width) value_edge<V>(block, j);
}

// exp by 2^n * e^r: r in [-ln2/2, ln2/2], a polynomial of degree 6 fitted by the Taylor series (its
// error there is below half an ulp of fp32), and two exact powers of two, so that the result
// underflows and overflows as it should. A NaN stays a NaN.
template <class V>
V exp_lanes(V x) {
  x = V::max(V::broadcast(-110.0f), x);
  x = V::min(V::broadcast(90.0f), x);
  const V magic = V::broadcast(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const V shifted = V::fma(x, V::broadcast(1.44269504f), magic);
  const V n = V::sub(shifted, magic);
  V r = V::fma(n, V::broadcast(-0.693145752f), x);
  r = V::fma(n, V::broadcast(-1.42860677e-6f), r);
  V p = V::broadcast(1.0f / 5040.0f);
  p = V::fma(p, r, V::broadcast(1.0f / 720.0f));
  p = V::fma(p, r, V::broadcast(1.0f / 120.0f));
  p = V::fma(p, r, V::broadcast(1.0f / 24.0f));
  p = V::fma(p, r, V::broadcast(1.0f / 6.0f));
  p = V::fma(p, r, V::broadcast(0.5f));
  p = V::fma(p, r, V::broadcast(1.0f));
  p = V::fma(p, r, V::broadcast(1.0f));
  return V::times_power_of_two(p, shifted);
}

template <class V>
V sigmoid_lanes(V x) {
  const V one = V::broadcast(1.0f);
  return V::div(one, V::add(one, exp_lanes(V::sub(V::zero(), x))));
}

template <class V>
float scale_max(float* x, size_t n, float factor) {
  const V f = V::broadcast(factor);
  V largest = V::broadcast(x[0] * factor);
  size_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) {
    const V product = V::mul(V::load(x + i), f);
    product.store(x + i);
    largest = V::max(largest, product);
  }
  float lanes[V::kLanes];
  largest.store(lanes);
  float result = lanes[0];
  for (size_t j = 1; j < V::kLanes; ++j) result = result > lanes[j] ? result : lanes[j];
  for (; i < n; ++i) {
    x[i] *= factor;
    result = result > x[i] ? result : x[i];
  }
  return result;
}

template <class V>
float exp_sum(float* x, size_t n, float shift) {
  const V s = V::broadcast(shift);
  V sum = V::zero();
  size_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) {
    const V e = exp_lanes(V::sub(V::load(x + i), s));
    e.store(x + i);
    sum = V::add(sum, e);
  }
  if (i < n) {
    const V e = exp_lanes(V::sub(V::load_part(x + i, n - i), s));
    e.store_part(x + i, n - i);
    sum = V::add(sum, V::load_part(x + i, n - i));
  }
  return V::sum(sum);
}

template <class V>
void silu_mul(const float* gate, const float* up, float* y, size_t n) {
  size_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) {
    const V g = V::load(gate + i);
    V::mul(V::mul(g, sigmoid_lanes(g)), V::load(up + i)).store(y + i);
  }
  if (i < n) {
    const V g = V::load_part(gate + i, n - i);
    V::mul(V::mul(g, sigmoid_lanes(g)), V::load_part(up + i, n - i)).store_part(y + i, n - i);
  }
}

template <class V>
void sigmoid(float* x, size_t n) {
  size_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) sigmoid_lanes(V::load(x + i)).store(x + i);
  if (i < n) sigmoid_lanes(V::load_part(x + i, n - i)).store_part(x + i, n - i);
}

template <class V>
constexpr Simd make_simd(const char* family) {
  return Simd{family,
              V::widen,
              V::narrow,
              widen_scaled<V, WeightE4m3<V>>,
              dot<V>,
              accumulate<V>,
              scale_max<V>,
              exp_sum<V>,
              silu_mul<V>,
              sigmoid<V>};
}

}  // namespace ember::lanes
