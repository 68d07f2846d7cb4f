// Kernel choice: which matmul a device uses, and the name of its kernel family, such as "cpu-avx2"
// or "cpu-avx512+onednn-2.6.3-avx512_core_bf16".
//
// Journey    cpu_device, sim_device -> [kernel_choice]
// Invariant  one choice for the life of a device; the family names it for the numerics build
#pragma once

#include <string>

#include "kernels/run_op.h"

namespace ember {

struct KernelChoice {
  MatmulFunction matmul = nullptr;
  std::string family;
};

KernelChoice choose_kernels(bool allow_onednn);

}  // namespace ember
