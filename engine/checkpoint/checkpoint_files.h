// Checkpoint files: what lies beside the weights, for a checkpoint that is made from another one.
//
// Journey    checkpoint folder -> [checkpoint_files] -> another folder
// Invariant  everything but weights, index and quantization_config is copied as it is
#pragma once

#include <map>
#include <string>

#include "base/result.h"

namespace ember {

// What config.json says of fp8 weights. kNone: nothing. The others name the scales' form.
enum class QuantizationNote : uint8_t { kNone, kFp8, kFp8PowersOfTwo };

// Copies every plain file of `from` that holds no weights into `to`, config.json with the note.
// Errors: kIo, kCorruption (config.json).
Status copy_checkpoint_files(const std::string& from, const std::string& to, QuantizationNote note);

// Writes the index of `to`: weight_map and empty metadata, as DeepSeek's own cast does.
Status write_checkpoint_index(const std::string& to,
                              const std::map<std::string, std::string>& weight_map);

// Makes files and folder durable. Errors: kIo.
Status sync_folder(const std::string& folder);

}  // namespace ember
