// Simd, AVX-512 level: inner products two columns to a register, values and exponentials 16 to one;
// everything else is the AVX2 level's. Built with -mavx512f and its family, entered where the CPU
// and the system have them.
#include "kernels/simd_avx2_lanes.h"
#include "kernels/simd_avx512_lanes.h"

namespace ember {
namespace {

using lanes::kLanes;
using lanes::lesser;

constexpr size_t kTilePairs = 4;  // with 6 rows: sums, weights and a row of x fill the registers
constexpr size_t kTileColumns = 2 * kTilePairs;
constexpr size_t kTileRows = 6;
constexpr size_t kHalves = 32;  // bf16 of a register
static_assert(kDotColumns % kTileColumns == 0);

// Where a tile's sums go; the last tile of a matrix has fewer columns.
struct TileEnd {
  float* y;
  size_t y_stride;
  size_t columns;
};

template <size_t R>
void finish(const Avx512Pair (&acc)[R][kTilePairs], const TileEnd& end) {
  for (size_t r = 0; r < R; ++r) {
    // The sums of the first columns of four pairs, then of the second.
    static_assert(kTilePairs == 4);
    const __m256 sums = Avx512Pair::sums(acc[r][0], acc[r][1], acc[r][2], acc[r][3]);
    const __m256 in_order =
        _mm256_permutevar8x32_ps(sums, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    const auto mask = static_cast<__mmask8>(first_lanes(end.columns));
    _mm256_mask_storeu_ps(end.y + r * end.y_stride, mask, in_order);
  }
}

// R rows of x and a tile's columns, straight from memory.
struct HalfTile {
  const float* x;
  size_t x_stride;
  const char* w[kTileColumns];
  size_t next_bytes;  // from a tile's weights to those of the next
  size_t k;
  TileEnd end;
};

template <size_t S, size_t R>
void half_step(const HalfSteps (&w)[kTilePairs], const Avx512Pair (&x)[R],
               Avx512Pair (&acc)[R][kTilePairs]) {
  EMBER_UNROLL
  for (size_t p = 0; p < kTilePairs; ++p) {
    const Avx512Pair columns = w[p].step<S>();
    EMBER_UNROLL
    for (size_t r = 0; r < R; ++r) acc[r][p] = Avx512Pair::fma(x[r], columns, acc[r][p]);
  }
}

template <size_t S, size_t R>
void whole_step(const HalfTile& t, size_t i, const HalfSteps (&w)[kTilePairs],
                Avx512Pair (&acc)[R][kTilePairs]) {
  Avx512Pair x[R];
  EMBER_UNROLL
  for (size_t r = 0; r < R; ++r) {
    x[r] = Avx512Pair::load_row(t.x + r * t.x_stride + i + S * kLanes);
  }
  half_step<S, R>(w, x, acc);
}

template <size_t S, size_t R>
void part_step(const HalfTile& t, size_t i, const HalfSteps (&w)[kTilePairs],
               Avx512Pair (&acc)[R][kTilePairs]) {
  const size_t at = i + S * kLanes;
  if (at >= t.k) return;
  Avx512Pair x[R];
  EMBER_UNROLL
  for (size_t r = 0; r < R; ++r) {
    x[r] = Avx512Pair::load_row_part(t.x + r * t.x_stride + at, lesser(kLanes, t.k - at));
  }
  half_step<S, R>(w, x, acc);
}

template <size_t R>
void half_tile(const HalfTile& t) {
  Avx512Pair acc[R][kTilePairs];
  EMBER_UNROLL
  for (size_t r = 0; r < R; ++r) {
    EMBER_UNROLL
    for (size_t p = 0; p < kTilePairs; ++p) acc[r][p] = Avx512Pair::zero();
  }
  HalfSteps w[kTilePairs];
  size_t i = 0;
  for (; i + kHalves <= t.k; i += kHalves) {
    EMBER_UNROLL
    for (size_t p = 0; p < kTilePairs; ++p) {
      const char* first = t.w[2 * p] + i * sizeof(bf16);
      const char* second = t.w[2 * p + 1] + i * sizeof(bf16);
      w[p] = HalfSteps::load(first, second);
    }
    const char* next = t.w[0] + t.next_bytes + i * (kTileColumns * sizeof(bf16));
    for (size_t line = 0; line < kTileColumns; ++line) _mm_prefetch(next + line * 64, _MM_HINT_T0);
    whole_step<0, R>(t, i, w, acc);
    whole_step<1, R>(t, i, w, acc);
    whole_step<2, R>(t, i, w, acc);
    whole_step<3, R>(t, i, w, acc);
  }
  if (i < t.k) {
    for (size_t p = 0; p < kTilePairs; ++p) {
      w[p] = HalfSteps::load_part(t.w[2 * p] + i * sizeof(bf16), t.w[2 * p + 1] + i * sizeof(bf16),
                                  t.k - i);
    }
    part_step<0, R>(t, i, w, acc);
    part_step<1, R>(t, i, w, acc);
    part_step<2, R>(t, i, w, acc);
    part_step<3, R>(t, i, w, acc);
  }
  finish<R>(acc, t.end);
}

// Few rows of bf16 weights: they stream once from memory, widened in registers.
void dot_few_rows(const DotBlock& b) {
  for (size_t c = 0; c < b.n; c += kTileColumns) {
    HalfTile tile{};
    tile.x_stride = b.x_stride;
    tile.k = b.k;
    tile.next_bytes = kTileColumns * b.w_stride * sizeof(bf16);
    tile.end = {nullptr, b.y_stride, lesser(kTileColumns, b.n - c)};
    for (size_t j = 0; j < kTileColumns; ++j) {
      tile.w[j] = lanes::weight_address(b, c + lesser(j, tile.end.columns - 1), 0);
    }
    for (size_t r = 0; r < b.rows; r += 4) {
      tile.x = b.x + r * b.x_stride;
      tile.end.y = b.y + r * b.y_stride + c;
      switch (lesser(4, b.rows - r)) {
        case 1:
          half_tile<1>(tile);
          break;
        case 2:
          half_tile<2>(tile);
          break;
        case 3:
          half_tile<3>(tile);
          break;
        default:
          half_tile<4>(tile);
      }
    }
  }
}

// An inner block of two columns: [step of 8 values, 16], zeros behind the last value.
void pack_halves(const DotBlock& b, size_t first, size_t second, size_t inner, size_t size,
                 float* to) {
  const char* a = lanes::weight_address(b, first, inner);
  const char* c = lanes::weight_address(b, second, inner);
  // The columns lie far apart, and a block is too short for the CPU to see what comes next: the
  // next block of them, or the first one of the next panel's.
  const bool last = inner + size == b.k;
  const size_t ahead = last ? (kDotColumns * b.w_stride - inner) * sizeof(bf16)
                            : size * sizeof(bf16);
  for (size_t i = 0; i < size; i += kHalves) {
    const size_t n = lesser(kHalves, size - i);
    const size_t at = i * sizeof(bf16);
    const HalfSteps w = HalfSteps::load_part(a + at, c + at, n);
    _mm_prefetch(a + at + ahead, _MM_HINT_T1);
    _mm_prefetch(c + at + ahead, _MM_HINT_T1);
    float* steps = to + i * 2;
    w.step<0>().store(steps);
    if (n > 8) w.step<1>().store(steps + 16);
    if (n > 16) w.step<2>().store(steps + 32);
    if (n > 24) w.step<3>().store(steps + 48);
  }
}

// One column's half of a pair, from fp32.
void pack_column(const float* from, size_t size, float* to) {
  for (size_t i = 0; i < size; i += kLanes) {
    const auto mask = static_cast<__mmask8>(first_lanes(lesser(kLanes, size - i)));
    _mm256_storeu_ps(to + i * 2, _mm256_maskz_loadu_ps(mask, from + i));
  }
}

size_t padded(size_t size) { return (size + kLanes - 1) / kLanes * kLanes; }

// Where columns are missing in the last tile the last one stands in their place.
void pack_panel(const DotBlock& b, size_t column, size_t columns, size_t inner, size_t size,
                float* panel) {
  alignas(64) float wide[kDotInner];
  const size_t pairs = (columns + kTileColumns - 1) / kTileColumns * kTilePairs;
  for (size_t p = 0; p < pairs; ++p) {
    float* to = panel + p * 2 * padded(size);
    const size_t pair[] = {column + lesser(2 * p, columns - 1),
                           column + lesser(2 * p + 1, columns - 1)};
    if (b.w_dtype == DType::kBf16) {
      pack_halves(b, pair[0], pair[1], inner, size, to);
      continue;
    }
    for (size_t half = 0; half < 2; ++half) {
      const void* from = lanes::weight_address(b, pair[half], inner);
      if (b.w_dtype != DType::kF32) {
        lanes::widen_column<Avx2Lanes>(b, pair[half], inner, size, wide);
        from = wide;
      }
      pack_column(static_cast<const float*>(from), size, to + half * kLanes);
    }
  }
}

// R rows of x and a tile's columns of a packed panel.
struct PanelTile {
  const float* x;
  size_t x_stride;
  const float* w;  // [kTilePairs, padded(k) / 8, 16]
  size_t k;        // of the inner block
  float* partial;  // [R, kTilePairs, 16]: lane sums, carried between inner blocks
  bool first;      // inner block: starts from zero
  bool last;       // inner block: the lanes are summed
  TileEnd end;
};

// A row of x at a time: all registers hold sums and weights.
template <size_t R, class Row>
void panel_step(const PanelTile& t, size_t i, Row row, Avx512Pair (&acc)[R][kTilePairs]) {
  Avx512Pair w[kTilePairs];
  EMBER_UNROLL
  for (size_t p = 0; p < kTilePairs; ++p) {
    w[p] = Avx512Pair::load(t.w + (p * padded(t.k) + i) * 2);
  }
  EMBER_UNROLL
  for (size_t r = 0; r < R; ++r) {
    const Avx512Pair x = row(t.x + r * t.x_stride + i);
    EMBER_UNROLL
    for (size_t p = 0; p < kTilePairs; ++p) acc[r][p] = Avx512Pair::fma(x, w[p], acc[r][p]);
  }
}

template <size_t R>
void panel_tile(const PanelTile& t) {
  Avx512Pair acc[R][kTilePairs];
  EMBER_UNROLL
  for (size_t r = 0; r < R; ++r) {
    EMBER_UNROLL
    for (size_t p = 0; p < kTilePairs; ++p) {
      acc[r][p] =
          t.first ? Avx512Pair::zero() : Avx512Pair::load(t.partial + (r * kTilePairs + p) * 16);
    }
  }
  size_t i = 0;
  for (; i + kLanes <= t.k; i += kLanes) {
    panel_step<R>(t, i, [](const float* x) { return Avx512Pair::load_row(x); }, acc);
  }
  if (i < t.k) {
    const size_t left = t.k - i;
    panel_step<R>(t, i, [left](const float* x) { return Avx512Pair::load_row_part(x, left); }, acc);
  }
  if (t.last) return finish<R>(acc, t.end);
  EMBER_UNROLL
  for (size_t r = 0; r < R; ++r) {
    EMBER_UNROLL
    for (size_t p = 0; p < kTilePairs; ++p) acc[r][p].store(t.partial + (r * kTilePairs + p) * 16);
  }
}

void panel_tile_any(size_t rows, const PanelTile& tile) {
  switch (rows) {
    case 1:
      return panel_tile<1>(tile);
    case 2:
      return panel_tile<2>(tile);
    case 3:
      return panel_tile<3>(tile);
    case 4:
      return panel_tile<4>(tile);
    case 5:
      return panel_tile<5>(tile);
    default:
      return panel_tile<kTileRows>(tile);
  }
}

// Up to kDotRows rows: weights are widened and packed once for all of them.
void dot_many_rows(const DotBlock& b, DotScratch& scratch) {
  constexpr size_t kPanelPairs = kDotColumns / 2;
  for (size_t column = 0; column < b.n; column += kDotColumns) {
    const size_t columns = lesser(kDotColumns, b.n - column);
    for (size_t inner = 0; inner < b.k; inner += kDotInner) {
      const size_t size = lesser(kDotInner, b.k - inner);
      pack_panel(b, column, columns, inner, size, scratch.panel);
      for (size_t c = 0; c < columns; c += kTileColumns) {
        for (size_t r = 0; r < b.rows; r += kTileRows) {
          const size_t rows = lesser(kTileRows, b.rows - r);
          panel_tile_any(
              rows, {.x = b.x + r * b.x_stride + inner,
                     .x_stride = b.x_stride,
                     .w = scratch.panel + c * padded(size),
                     .k = size,
                     .partial = scratch.partial + (r * kPanelPairs + rows * c / 2) * 2 * kLanes,
                     .first = inner == 0,
                     .last = inner + size == b.k,
                     .end = {b.y + r * b.y_stride + column + c, b.y_stride,
                             lesser(kTileColumns, columns - c)}});
        }
      }
    }
  }
}

void dot(const DotBlock& block, DotScratch& scratch) {
  if (block.rows < 8) {
    if (block.w_dtype == DType::kBf16) return dot_few_rows(block);
    return lanes::dot<Avx2Lanes>(block, scratch);
  }
  for (size_t r = 0; r < block.rows; r += kDotRows) {
    DotBlock part = block;
    part.x += r * block.x_stride;
    part.y += r * block.y_stride;
    part.rows = lesser(kDotRows, block.rows - r);
    dot_many_rows(part, scratch);
  }
}

// 16 exponentials at once; their sum goes on 8 lanes, as at every level.
float exp_sum(float* x, size_t n, float shift) {
  const Avx512Lanes s = Avx512Lanes::broadcast(shift);
  __m256 sum = _mm256_setzero_ps();
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const Avx512Lanes e = lanes::exp_lanes(Avx512Lanes::sub(Avx512Lanes::load(x + i), s));
    e.store(x + i);
    sum = _mm256_add_ps(sum, _mm512_castps512_ps256(e.v));
    sum = _mm256_add_ps(sum, _mm512_extractf32x8_ps(e.v, 1));
  }
  if (i < n) {
    const size_t left = n - i;
    const Avx512Lanes e =
        lanes::exp_lanes(Avx512Lanes::sub(Avx512Lanes::load_part(x + i, left), s));
    e.store_part(x + i, left);
    const __m512 part = _mm512_maskz_mov_ps(first_lanes(left), e.v);
    sum = _mm256_add_ps(sum, _mm512_castps512_ps256(part));
    if (left > 8) sum = _mm256_add_ps(sum, _mm512_extractf32x8_ps(part, 1));
  }
  return Avx2Lanes::sum({sum});
}

constexpr Simd make_level() {
  Simd level = lanes::make_simd<Avx2Lanes>("cpu-avx512");
  level.dot = dot;
  level.accumulate = lanes::accumulate<Avx512Lanes>;
  level.exp_sum = exp_sum;
  level.silu_mul = lanes::silu_mul<Avx512Lanes>;
  return level;
}

}  // namespace

const Simd* avx512_simd() {
  static constexpr Simd kLevel = make_level();
  const bool present = avx2_simd() != nullptr && __builtin_cpu_supports("avx512f") &&
                       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                       __builtin_cpu_supports("avx512vl");
  return present ? &kLevel : nullptr;
}

}  // namespace ember
