// Tar stream: whole small files one behind the other in a tar, written and read front to back, by
// libarchive, which is known to tar_stream.cc alone.
//
// Journey    transfer_writer -> [tar_stream] -> a file or a pipe -> [tar_stream] -> transfer_reader
// Owns       one entry's body at a time
// Invariant  plain ustar and nothing else: no filter, no extension header, no link, no hole; a name
//            is text and never a path; a body takes memory as its bytes come, not as a header says
// Threads    one
// Not here   which entries there are, and in which order (store/transfer/transfer_format.h)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ember {

// Takes the next bytes of a stream. Errors: kIo, kCapacity, kCancelled.
using ByteSink = std::function<Status(std::string_view bytes)>;
// Gives at most `most` next bytes of a stream; 0: it has ended. Errors: kIo, kCancelled.
using ByteSource = std::function<Result<size_t>(char* to, size_t most)>;

class TarWriter {
 public:
  static std::unique_ptr<TarWriter> make(ByteSink sink);
  virtual ~TarWriter() = default;
  // A regular file. Errors: the sink's; kCapacity (a body beyond what ustar can say).
  virtual Status add(const std::string& name, std::string_view body, int64_t unix_s) = 0;
  // The mark of the archive's end. Nothing follows.
  virtual Status end() = 0;
};

struct TarEntry {
  std::string name;
  uint64_t bytes = 0;
};

class TarReader {
 public:
  static std::unique_ptr<TarReader> make(ByteSource source);
  virtual ~TarReader() = default;
  // The next entry; nothing at the archive's end, behind which nothing but zeros may follow.
  // Errors: the source's; kCorruption (no tar, or not one of ours).
  virtual Result<std::optional<TarEntry>> next() = 0;
  // The body of the entry that next() gave, into `body`. Errors: the source's; kCorruption (it is
  // longer than `most` or ends too early).
  virtual Status read(uint64_t most, std::string& body) = 0;
};

}  // namespace ember
