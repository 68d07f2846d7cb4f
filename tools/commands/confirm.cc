// Asking on a terminal.
#include "tools/commands/confirm.h"

#include "tools/commands/messages.h"

namespace ember {

bool can_consent(const Consent& consent, CommandIo& io) {
  if (consent.yes || consent.dry_run || io.interactive) return true;
  print_error(io.err,
              "standard input is no terminal that could be asked: give --yes, or --dry-run to see "
              "what would be done");
  return false;
}

bool confirm(const Consent& consent, const std::string& what, CommandIo& io) {
  if (consent.yes) return true;
  io.out << std::flush;
  io.err << what << "? [y/N] " << std::flush;
  std::string answer;
  std::getline(io.in, answer);
  const bool agreed = answer == "y" || answer == "Y" || answer == "yes";
  if (!agreed) io.err << "nothing was changed" << std::endl;
  return agreed;
}

}  // namespace ember
