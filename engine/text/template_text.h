// Template text: tells whether two Jinja templates are the same but for their layout.
//
// Journey    none; how chat_template.h recognises a published template
// Invariant  templates with one digest render alike: the white space that Jinja would drop (with
//            trim_blocks and lstrip_blocks, as chat templates are run), that inside its tags,
//            comments and the spelling of characters in strings do not count; all else does
// Threads    pure functions
#pragma once

#include <string>
#include <string_view>

namespace ember {

// The parts of a template, each with its length, tokens of tags apart; not for reading.
std::string normal_template(std::string_view text);

// XXH3-128 of the normal form, in hexadecimal.
std::string template_digest(std::string_view text);

}  // namespace ember
