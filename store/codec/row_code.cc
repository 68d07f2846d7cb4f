// Row code: the choice of a level at run time.
#include "store/codec/row_code.h"

namespace ember {

const RowCode& row_code() {
  const RowCode* avx2 = avx2_row_code();
  return avx2 != nullptr ? *avx2 : scalar_row_code();
}

}  // namespace ember
