// Matmul by oneDNN: single-threaded primitives on blocks of columns, checked before first use.
#include "kernels/matmul_onednn.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/prng.h"
#include "kernels/row_math.h"
#include "kernels/solo_team.h"

namespace ember {
namespace {

// Columns of one primitive; cut at multiples of it, whatever the team.
constexpr size_t kBlockColumns = 256;
// Rows of a primitive: a call is padded to the next of the fit ones, or cut in runs of the largest.
// The base decides what the bits are; another size is fit when it gives the same.
constexpr size_t kRowSizes[] = {1, 16, 64, 256};
constexpr size_t kSizes = std::size(kRowSizes);
constexpr size_t kBase = 1;
using FitSizes = std::array<bool, kSizes>;  // all false: the portable kernel
// More shapes than any model has; beyond, the portable kernel computes.
constexpr size_t kMaxShapes = 512;

struct Shape {
  size_t n = 0;  // of the block, at most kBlockColumns
  size_t k = 0;
  DType in = DType::kBf16;  // of x and w
  DType out = DType::kBf16;
  friend auto operator<=>(const Shape&, const Shape&) = default;
};

// The smallest fit size that takes all rows, else the largest.
size_t size_for(const FitSizes& fit, size_t rows) {
  size_t best = kBase;
  for (size_t i = kSizes; i-- > 0;) {
    if (fit[i] && (kRowSizes[i] >= rows || kRowSizes[best] < kRowSizes[i])) best = i;
  }
  return best;
}

dnnl::memory::data_type onednn_dtype(DType dtype) {
  return dtype == DType::kBf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

// Name of the instruction set that oneDNN would use, or null below AVX-512. Their values are masks
// without an order, so they are listed.
const char* avx512_name() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::avx512_core: return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni: return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16: return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx: return "avx512_core_amx";
    default: return nullptr;
  }
}

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// A worker's primitive for one shape and number of rows, with memory objects to point where needed.
class Product {
 public:
  Product(const Shape& shape, size_t rows) {
    const auto m = static_cast<dnnl::memory::dim>(rows);
    const auto n = static_cast<dnnl::memory::dim>(shape.n);
    const auto k = static_cast<dnnl::memory::dim>(shape.k);
    using Md = dnnl::memory::desc;
    const Md x({m, k}, onednn_dtype(shape.in), dnnl::memory::dims{k, 1});
    const Md w({k, n}, onednn_dtype(shape.in), dnnl::memory::dims{1, k});  // [n, k] as it lies
    const Md y({m, n}, onednn_dtype(shape.out), dnnl::memory::dims{n, 1});
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc about(dnnl::matmul::desc(x, w, y), attributes, cpu_engine());
    primitive_ = dnnl::matmul(about);
    stream_ = dnnl::stream(cpu_engine());
    x_ = dnnl::memory(x, cpu_engine(), nullptr);
    w_ = dnnl::memory(w, cpu_engine(), nullptr);
    y_ = dnnl::memory(y, cpu_engine(), nullptr);
    arguments_ = {{DNNL_ARG_SRC, x_},
                  {DNNL_ARG_WEIGHTS, w_},
                  {DNNL_ARG_DST, y_},
                  {DNNL_ARG_SCRATCHPAD, dnnl::memory(about.scratchpad_desc(), cpu_engine())}};
  }

  void run(const void* x, const void* w, void* y) {
    x_.set_data_handle(const_cast<void*>(x));
    w_.set_data_handle(const_cast<void*>(w));
    y_.set_data_handle(y);
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::matmul primitive_;
  dnnl::stream stream_;
  dnnl::memory x_, w_, y_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

// This worker's product of the shape. oneDNN may throw.
Product& product_for(const Shape& shape, size_t size) {
  thread_local std::map<Shape, std::unique_ptr<Product>[kSizes]> products;
  thread_local const bool single = (omp_set_num_threads(1), true);
  EMBER_CHECK(single, "each worker keeps oneDNN to its own thread");
  std::unique_ptr<Product>& product = products[shape][size];
  if (product == nullptr) product = std::make_unique<Product>(shape, kRowSizes[size]);
  return *product;
}

std::vector<std::byte> random_rows(size_t rows, size_t k, DType dtype, uint64_t seed) {
  Prng random(seed);
  std::vector<float> wide(rows * k);
  for (float& v : wide) v = static_cast<float>(random.uniform() - 0.5);
  std::vector<std::byte> bytes(rows * k * dtype_bytes(dtype));
  store_row(wide.data(), dtype, wide.size(), bytes.data());
  return bytes;
}

struct Trial {
  Shape shape;
  std::vector<std::byte> w;    // [n, k]
  std::vector<std::byte> row;  // [k]
  std::vector<std::byte> y;    // [n]: what the row gives
};

// The row stands in every second place of a run, between rows that are all different: each time it
// must give y. The first run of the base says what y is.
bool gives_the_same(Trial& trial, size_t size) {
  const size_t rows = kRowSizes[size];
  const size_t y_bytes = trial.shape.n * dtype_bytes(trial.shape.out);
  std::vector<std::byte> x = random_rows(rows, trial.shape.k, trial.shape.in, 3 + size);
  for (size_t parity = 0; parity < std::min<size_t>(rows, 2); ++parity) {
    for (size_t r = parity; r < rows; r += 2) {
      std::memcpy(x.data() + r * trial.row.size(), trial.row.data(), trial.row.size());
    }
    std::vector<std::byte> y(rows * y_bytes);
    product_for(trial.shape, size).run(x.data(), trial.w.data(), y.data());
    if (trial.y.empty()) trial.y.assign(y.begin(), y.begin() + static_cast<ptrdiff_t>(y_bytes));
    for (size_t r = parity; r < rows; r += 2) {
      if (std::memcmp(y.data() + r * y_bytes, trial.y.data(), y_bytes) != 0) return false;
    }
  }
  return true;
}

bool is_near_to_portable(const Trial& trial) {
  const Shape& shape = trial.shape;
  std::vector<float> expected(shape.n), found(shape.n);
  SoloTeam team;
  matmul_cpu(MatmulParams{1, 1, shape.n, shape.k, trial.row.data(), shape.in, shape.k, 0,
                          trial.w.data(), shape.in, 0, expected.data(), DType::kF32, shape.n, 0},
             team);
  load_row(trial.y.data(), shape.out, shape.n, found.data());
  const float scale = std::sqrt(static_cast<float>(shape.k));
  const float room = shape.out == DType::kBf16 ? 0.02f : 0.001f;
  for (size_t j = 0; j < shape.n; ++j) {
    if (!(std::fabs(found[j] - expected[j]) <= room * scale)) return false;
  }
  return true;
}

FitSizes check(const Shape& shape) {
  FitSizes fit{};
  Trial trial{shape, random_rows(shape.n, shape.k, shape.in, 1),
              random_rows(1, shape.k, shape.in, 2), {}};
  if (!gives_the_same(trial, kBase) || !is_near_to_portable(trial)) return fit;
  for (size_t size = 0; size < kSizes; ++size) fit[size] = gives_the_same(trial, size);
  // Runs of the base alone would be slower than the portable kernel.
  const bool pays = std::any_of(fit.begin() + kBase + 1, fit.end(), [](bool f) { return f; });
  return pays ? fit : FitSizes{};
}

class Verdicts {
 public:
  FitSizes of(const Shape& shape) EMBER_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto known = verdicts_.find(shape);
    if (known != verdicts_.end()) return known->second;
    if (verdicts_.size() >= kMaxShapes) return {};
    FitSizes fit{};
    try {
      fit = check(shape);
    } catch (const dnnl::error& error) {
      // A verdict says what this build and CPU can do, never how much memory was left just then.
      if (error.status == dnnl_out_of_memory) throw;
      fit = {};  // there is no such primitive
    }
    verdicts_.emplace(shape, fit);
    return fit;
  }

 private:
  Mutex mutex_;
  std::map<Shape, FitSizes> verdicts_ EMBER_GUARDED_BY(mutex_);
};

FitSizes fit_sizes(const Shape& shape) {
  static Verdicts verdicts;
  return verdicts.of(shape);
}

bool is_fit(const Shape& shape) { return fit_sizes(shape)[kBase]; }

// One worker's pass over one block of columns of one product of the batch.
struct Block {
  size_t batch;
  size_t column;
  Shape shape;
};

void portable_block(const MatmulParams& p, const Block& b) {
  thread_local SoloTeam team;
  MatmulParams part = p;
  part.batch = 1;
  part.n = b.shape.n;
  part.x = element(p.x, p.x_dtype, b.batch * p.x_batch_stride);
  part.w = element(p.w, p.w_dtype, b.batch * p.w_batch_stride + b.column * p.k);
  part.y = element(p.y, p.y_dtype, b.batch * p.y_batch_stride + b.column);
  matmul_cpu(part, team);
}

// Rows are gathered (and padded) into one run, results scattered from one: both small beside the
// product, and primitives need not know of strides.
void onednn_block(const MatmulParams& p, const Block& b, const FitSizes& fit, std::byte* x_run,
                  std::byte* y_run) {
  const void* w = element(p.w, p.w_dtype, b.batch * p.w_batch_stride + b.column * p.k);
  const size_t x_bytes = p.k * dtype_bytes(p.x_dtype);
  const size_t y_bytes = b.shape.n * dtype_bytes(p.y_dtype);
  for (size_t row = 0; row < p.rows;) {
    const size_t size = size_for(fit, p.rows - row);
    const size_t rows = std::min(kRowSizes[size], p.rows - row);
    for (size_t r = 0; r < rows; ++r) {
      const size_t at = b.batch * p.x_batch_stride + (row + r) * p.x_stride;
      std::memcpy(x_run + r * x_bytes, element(p.x, p.x_dtype, at), x_bytes);
    }
    std::memset(x_run + rows * x_bytes, 0, (kRowSizes[size] - rows) * x_bytes);
    product_for(b.shape, size).run(x_run, w, y_run);
    for (size_t r = 0; r < rows; ++r) {
      const size_t at = b.batch * p.y_batch_stride + (row + r) * p.y_stride + b.column;
      std::memcpy(element(p.y, p.y_dtype, at), y_run + r * y_bytes, y_bytes);
    }
    row += rows;
  }
}

// This worker's share of the product. oneDNN may throw.
void multiply(const MatmulParams& params, CpuTeam& team) {
  const size_t blocks = (params.n + kBlockColumns - 1) / kBlockColumns;
  const auto [first, last] = team.share(params.batch * blocks);
  if (first == last) return;
  const size_t rows = params.rows <= kRowSizes[kBase] ? kRowSizes[kBase] : kRowSizes[kSizes - 1];
  const size_t x_bytes = rows * params.k * dtype_bytes(params.x_dtype);
  const size_t y_bytes = rows * kBlockColumns * dtype_bytes(params.y_dtype);
  ScratchParts parts(team, ScratchParts::room(x_bytes) + ScratchParts::room(y_bytes));
  auto* x_run = parts.take<std::byte>(x_bytes);
  auto* y_run = parts.take<std::byte>(y_bytes);
  for (size_t at = first; at < last; ++at) {
    const size_t column = at % blocks * kBlockColumns;
    const size_t n = std::min(kBlockColumns, params.n - column);
    const Block block{at / blocks, column, Shape{n, params.k, params.x_dtype, params.y_dtype}};
    const FitSizes fit = fit_sizes(block.shape);
    if (fit[kBase]) {
      onednn_block(params, block, fit, x_run, y_run);
    } else {
      portable_block(params, block);
    }
  }
}

}  // namespace

bool onednn_has_avx512() { return avx512_name() != nullptr; }

std::string onednn_family() {
  const dnnl_version_t* version = dnnl_version();
  const char* isa = avx512_name();
  return "onednn-" + std::to_string(version->major) + "." + std::to_string(version->minor) +
         "." + std::to_string(version->patch) + "-" + (isa == nullptr ? "other" : isa);
}

bool onednn_is_fit(size_t n, size_t k, DType in, DType out) {
  const size_t edge = n % kBlockColumns;
  const bool whole = n < kBlockColumns || is_fit(Shape{kBlockColumns, k, in, out});
  return whole && (edge == 0 || is_fit(Shape{edge, k, in, out}));
}

void matmul_onednn(const MatmulParams& params, CpuTeam& team) {
  if (params.x_dtype != params.w_dtype) return matmul_cpu(params, team);
  // What worked in the check may still fail, for want of memory. Other bits than those of the
  // library's must not take their place in a result, so the program ends here.
  try {
    multiply(params, team);
  } catch (const dnnl::error& error) {
    team.fail(error.what());
  }
}

}  // namespace ember
