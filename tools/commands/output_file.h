// Output file: where a command writes what is large: a file that is whole or not there, or standard
// output.
//
// Journey    export -> [output_file] -> a file, a pipe
// Owns       a file without a name, or <path>.unfinished, until it is whole
// Invariant  an existing file is never written over; a file is 0600, and has its name only when all
//            of it is on the drive; a terminal is never sent binary
// Threads    one
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tools/commands/command_context.h"

namespace ember {

class OutputFile {
 public:
  // `path`: "-" is standard output. Errors: kInvalidArgument (there is such a file already; a
  // terminal), kIo.
  static Result<std::unique_ptr<OutputFile>> open(const std::string& path, CommandIo& io);
  virtual ~OutputFile() = default;
  // Errors: kIo, kCapacity; kCancelled when whoever asked has gone.
  virtual Status write(std::string_view bytes) = 0;
  // All of it has been written.
  virtual Status finish() = 0;
};

}  // namespace ember
