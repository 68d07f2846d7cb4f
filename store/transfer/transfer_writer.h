// Transfer writer: makes the file that carries what a store holds to another.
//
// Journey    store_reader -> [transfer_writer] -> a file or a pipe
// Owns       the numbers of the blocks, and the digest of all that was written
// Invariant  what it writes a transfer_reader reads: parents before children, tokenizers before
//            blocks before conversations, the end last
// Threads    one
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/transfer/tar_stream.h"
#include "store/transfer/transfer_format.h"

namespace ember {

class TransferWriter {
 public:
  // Errors: the sink's.
  static Result<std::unique_ptr<TransferWriter>> begin(ByteSink sink, TransferManifest manifest);

  // In the order of the manifest.
  Status add_tokenizer_file(const BlockHash& digest, const std::string& name,
                            std::string_view bytes);
  // A block or tail whose parent has the number `parent` (0: none); its own number. Hash, parent,
  // epoch and publisher of `record` do not travel.
  Result<uint64_t> add_block(BlockRecord record, std::span<const std::string> payloads,
                             uint64_t parent);
  Status add_conversation(const Conversation& conversation);
  Status end(uint64_t left_out);

  const TransferCounts& counts() const { return counts_; }
  uint64_t bytes() const { return *bytes_; }  // of the file, so far

 private:
  TransferWriter(std::unique_ptr<TarWriter> tar, std::shared_ptr<uint64_t> bytes, int64_t unix_s)
      : tar_(std::move(tar)), bytes_(std::move(bytes)), unix_s_(unix_s) {}
  Status add(const std::string& name, std::string_view body);

  std::unique_ptr<TarWriter> tar_;
  std::shared_ptr<uint64_t> bytes_;
  int64_t unix_s_ = 0;
  TransferDigest digest_;
  TransferCounts counts_;
};

}  // namespace ember
