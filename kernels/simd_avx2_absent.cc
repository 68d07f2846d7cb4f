// Simd, AVX2 level, for processors that are not x86: there is none.
#include "kernels/simd.h"

namespace ember {

const Simd* avx2_simd() { return nullptr; }

}  // namespace ember
