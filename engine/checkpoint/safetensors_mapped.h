// Safetensors over a mapping that is already open: for the checkpoint, which also fingerprints it.
//
// Journey    mapped_file -> [safetensors_mapped] -> checkpoint
#pragma once

#include <memory>
#include <string_view>

#include "base/dtype.h"
#include "base/result.h"
#include "engine/checkpoint/mapped_file.h"
#include "engine/checkpoint/safetensors.h"

namespace ember {

// Errors: as SafetensorsFile::open.
Result<std::unique_ptr<SafetensorsFile>> open_safetensors(std::shared_ptr<const MappedFile> file);

// The format's name of a dtype: "BF16".
std::string_view safetensors_dtype_name(DType dtype);

// "[3, 4]".
std::string shape_text(const std::vector<size_t>& shape);

}  // namespace ember
