// Fields and layout, framed and hashed.
#include "store/namespace_identity.h"

#include "base/bytes.h"

namespace ember {
namespace {

void append_framed(std::string& out, std::string_view text) {
  append_value(out, static_cast<uint64_t>(text.size()));
  out += text;
}

}  // namespace

NamespaceHash namespace_hash(std::span<const IdentityField> fields, const KvLayout& layout) {
  std::string framed;
  for (const auto& [tag, value] : fields) {
    append_framed(framed, tag);
    append_framed(framed, value);
  }
  append_framed(framed, "layout_identity");
  append_framed(framed, layout.identity());
  return digest128(as_bytes(framed));
}

}  // namespace ember
