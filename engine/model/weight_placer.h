// Weight placer: a checkpoint's tensors one by one, as the kernels read them.
//
// Journey    checkpoint -> [weight_placer] -> weights
// Invariant  a tensor is used as mapped unless its dtype, its alignment or the weight form forbids
//            it; what was converted is owned by ModelWeights
// Threads    the loading thread
// Not here   which tensors a model has (weights.cc)
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/model/weights.h"

namespace ember {

class WeightPlacer {
 public:
  WeightPlacer(ModelWeights& weights, DType precision, WeightForm form, Device& device)
      : weights_(weights), precision_(precision), form_(form), device_(device) {}

  // A matrix as the checkpoint stores it, with its scales where it is fp8 (whose `_scale_inv` may
  // be fp32, bf16 or powers of two in e8m0).
  // Errors, here and below: kInvalidArgument and kUnsupported naming the tensor; kCapacity.
  Result<Weight> stored_matrix(const std::string& name, size_t rows, size_t cols);

  // A linear layer, in the dtype that its stored form and the weight form ask for.
  Status linear(const std::string& name, size_t rows, size_t cols, Weight& weight);
  // A matrix that is never quantised: bf16 or fp32.
  Status matrix(const std::string& name, size_t rows, size_t cols, Weight& weight);
  // Norms and the router, at the width they are stored in: rounding them saves nothing.
  Status unrounded(const std::string& name, const std::vector<size_t>& shape, Weight& weight);
  // A small tensor as fp32.
  Status floats(const std::string& name, size_t size, std::vector<float>& values);

  // The dtype of a linear layer stored in `stored`.
  DType linear_dtype(DType stored) const;
  // `stored` as `dtype`, mapped where that is possible.
  Result<Weight> place(const std::string& name, const Weight& stored, DType dtype);

  // Names of all tensors asked for, and how many values they hold (scales not counted).
  bool knows(const std::string& name) const { return known_.contains(name); }
  uint64_t values() const { return values_; }

 private:
  Result<TensorView> fetch(const std::string& name, const std::vector<size_t>& shape);
  Result<const float*> fetch_scales(const std::string& name, size_t rows, size_t cols);
  Result<std::byte*> own(size_t bytes);
  DType plain_dtype(DType stored) const;

  ModelWeights& weights_;
  DType precision_;
  WeightForm form_;
  Device& device_;
  std::set<std::string> known_;
  uint64_t values_ = 0;
};

}  // namespace ember
