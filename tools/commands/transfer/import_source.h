// Import source: a file that is read twice, or standard input, which is kept on the drive between.
//
// Journey    a file, a pipe -> [import_source] -> import, twice
// Owns       the file's descriptor, or the spool
// Invariant  the second reading gives the bytes of the first, or an error
// Threads    one
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "store/transfer/tar_stream.h"
#include "tools/commands/command_context.h"

namespace ember {

class ImportSource {
 public:
  // `file`: "-" is standard input, of which at most `most_bytes` are kept on the drive of
  // `folder`. Errors: kIo; kInvalidArgument for what is no regular file.
  static Result<std::unique_ptr<ImportSource>> open(const std::string& file, CommandIo& io,
                                                    const std::string& folder,
                                                    uint64_t most_bytes);
  virtual ~ImportSource() = default;
  virtual ByteSource first() = 0;
  // After all of the first reading.
  virtual Result<ByteSource> again() = 0;
};

}  // namespace ember
