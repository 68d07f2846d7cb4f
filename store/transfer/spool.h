// Spool: a stream that came through a pipe, kept on the drive until all of it is proven.
//
// Journey    standard input -> [spool] -> transfer_reader, a second time
// Owns       a file without a name, so that a crash leaves nothing of it
// Invariant  never more than its limit; sealed with a key that this process alone has ever had, so
//            that beside an encrypted store no latent lies in clear; what was read is given back
//            to the drive
// Threads    one
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ember {

class Spool {
 public:
  // On the drive of `folder`, which is there. Errors: kIo naming it.
  static Result<std::unique_ptr<Spool>> make(const std::string& folder, uint64_t most_bytes);
  virtual ~Spool() = default;

  // Errors: kCapacity (beyond the limit, or a full drive), kIo.
  virtual Status write(std::string_view bytes) = 0;
  // Nothing is written any more: what was comes back from its front, once.
  virtual Status begin_reading() = 0;
  // At most `most` next bytes; 0 at the end. Errors: kIo, kCorruption.
  virtual Result<size_t> read(char* to, size_t most) = 0;
  virtual uint64_t bytes() const = 0;
};

}  // namespace ember
