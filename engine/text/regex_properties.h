// Regex properties: makes \p{..}, \w and \d mean what they mean in the tokenizers package.
//
// Journey    none; a step of compiling an expression (regex.h)
// Invariant  after it, general categories, Han, \w and \d follow Unicode 16 whatever version the
//            installed Oniguruma knows; other properties, [:posix:] and \b follow the library
// Threads    safe: definitions are the process's and are made under a lock
// Not here   the data (unicode_update.h)
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace ember {

// Defines the properties that `pattern` names and returns the pattern to compile, in which \w and
// \d are written as properties. Errors: kUnsupported for an ASCII-only option such as (?W), which
// would change what they mean, and past Oniguruma's limit of 20 definitions.
Result<std::string> with_current_properties(std::string_view pattern);

}  // namespace ember
