// Value sealer: a store in clear and an encrypted one, read and written in the same words.
#include "store/disk/value_sealer.h"

#include <utility>

namespace ember {

Result<std::string> stored_form(ValueSealer* sealer, std::string_view scope, ValuePlace place,
                                std::string plain) {
  if (sealer == nullptr) return plain;
  return sealer->seal(scope, place, plain);
}

Result<std::optional<std::string_view>> plain_form(ValueSealer* sealer, ValuePlace place,
                                                   std::string_view stored, std::string& opened) {
  if (sealer == nullptr) return std::optional<std::string_view>(stored);
  EMBER_ASSIGN(std::optional<std::string> plain, sealer->open(place, stored));
  if (!plain) return std::optional<std::string_view>();
  opened = std::move(*plain);
  return std::optional<std::string_view>(opened);
}

}  // namespace ember
