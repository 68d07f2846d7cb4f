// Simd, the levels of x86, for other processors: there are none.
#include "kernels/simd.h"

namespace ember {

const Simd* avx2_simd() { return nullptr; }
const Simd* avx512_simd() { return nullptr; }

}  // namespace ember
