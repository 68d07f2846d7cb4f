// Top screen: lines on a whole terminal, and the keys that are pressed there.
//
// Journey    top's frames -> [top_screen] -> the terminal
// Owns       the terminal's state while it lives; it is put back at the end
// Invariant  draws what it is given, line by line, and knows nothing of a store
// Threads    one; one at a time
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "tools/commands/look/top_model.h"

namespace ember {

enum class TopKey : uint8_t { kNone, kQuit, kPause, kLonger, kShorter, kHelp, kResized, kGone };

class TopScreen {
 public:
  // Takes the terminal of standard input and output.
  // Errors: kInvalidArgument where they are none, or one that TERM does not describe.
  static Result<std::unique_ptr<TopScreen>> open();
  virtual ~TopScreen() = default;

  virtual size_t width() const = 0;
  virtual size_t height() const = 0;
  virtual bool unicode() const = 0;
  virtual void draw(const std::vector<TopLine>& lines) = 0;
  // The next key, within so long. kGone: the terminal has hung up.
  virtual TopKey key(int timeout_ms) = 0;
};

}  // namespace ember
