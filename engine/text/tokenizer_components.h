// Tokenizer components: the normalizer, pre-tokenizer, post-processor and decoder of a
// tokenizer.json, taken apart into steps.
//
// Journey    none; a part of reading a tokenizer.json (tokenizer_file.h)
// Invariant  a component, key or option that is not known is an error that names it
// Not here   public headers: only .cc files of this folder include this one (it shows the library)
#pragma once

#include <vector>

#include "base/result.h"
#include "engine/text/json_view.h"
#include "engine/text/tokenizer_file.h"

namespace ember {

// Each appends the steps of `view`, Sequences in the order in which they are nested.
Status parse_normalizer(const JsonView& view, std::vector<NormalizerStep>& steps);
Status parse_pre_tokenizer(const JsonView& view, std::vector<PreTokenizerStep>& steps);
Status parse_decoder(const JsonView& view, std::vector<DecoderStep>& steps);
// Puts what `view` adds to a text around what is in `frame`.
Status parse_post_processor(const JsonView& view, SpecialFrame& frame);

}  // namespace ember
