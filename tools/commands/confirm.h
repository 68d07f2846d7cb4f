// Confirm: asks before something is removed for good.
//
// Journey    rm, gc, repair, quarantine -> [confirm] -> a person
// Invariant  without a person to ask, nothing but --yes lets a change happen
// Threads    the command's
#pragma once

#include <string>

#include "tools/commands/command_context.h"

namespace ember {

struct Consent {
  bool yes = false;      // --yes
  bool dry_run = false;  // --dry-run
};

// False: neither flag was given and there is nobody to ask; said on io.err, for exit code 2.
bool can_consent(const Consent& consent, CommandIo& io);

// Whether to go on with `what` ("remove 3 blocks"); asks on a terminal unless --yes.
bool confirm(const Consent& consent, const std::string& what, CommandIo& io);

}  // namespace ember
