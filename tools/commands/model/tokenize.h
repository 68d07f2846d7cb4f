// tokenize: JSON lines of text to JSON lines of ids, and back.
//
// Journey    standard input -> [tokenize] -> engine/text/tokenizer -> standard output
// Invariant  one line out for each line in; the first line that is not understood ends the run with
//            its number, and what was written before it stays
// Not here   flags (tools/emberkv.cc)
#pragma once

#include <iosfwd>
#include <string>

#include "base/result.h"

namespace ember {

struct TokenizeOptions {
  std::string tokenizer_path;  // a tokenizer.json, a gzip of one, or a folder
  bool bos = false;            // the BOS id first
  bool decode = false;         // {"ids": [...]} to {"text": ...}
  bool skip_special = false;   // leave special tokens out of the text
};

// Reads `in` to its end. A blank line is malformed, except a last one.
// Errors: those of Tokenizer::load; kInvalidArgument naming the line (from 1), what was found and
// what was expected; kIo when reading or writing fails.
Status run_tokenize(const TokenizeOptions& options, std::istream& in, std::ostream& out);

}  // namespace ember
