// Converted names: tensors as DeepSeek's inference code names them, in the names of Hugging Face.
//
// Journey    model0-mp1.safetensors -> [converted_names] -> checkpoint
// Invariant  a name that the conversion does not make stays as it is, and is refused later by name
// Threads    any; pure
// Source     DeepSeek-V3's inference/convert.py (the reverse of its renaming)
#pragma once

#include <string>
#include <string_view>

namespace ember {

// "layers.3.attn.wq_a.scale" -> "model.layers.3.self_attn.q_a_proj.weight_scale_inv".
std::string published_name(std::string_view converted);

}  // namespace ember
