// Row code's AVX2 level on CPUs of another kind: there is none.
#include "store/codec/row_code.h"

namespace ember {

const RowCode* avx2_row_code() { return nullptr; }

}  // namespace ember
