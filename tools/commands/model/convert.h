// convert: an fp8 checkpoint as bf16, or a bf16 one as fp8, in a new folder.
//
// Journey    checkpoint folder -> [convert] -> checkpoint folder
// Invariant  the new folder is whole or absent
// Threads    main
#pragma once

#include <ostream>

#include "base/result.h"
#include "engine/model/cast_checkpoint.h"

namespace ember {

struct ConvertOptions {
  CastOptions cast;
  bool json = false;
};

// Errors: those of cast_checkpoint.
Status run_convert(const ConvertOptions& options, std::ostream& out);

}  // namespace ember
