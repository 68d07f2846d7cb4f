// Transfer writer: makes the file that carries what a store holds to another.
//
// Journey    store_reader -> [transfer_writer] -> a file or a pipe
// Owns       the numbers of the blocks, and the digest of all that was written
// Invariant  what it writes a transfer_reader reads: parents before children, tokenizers before
//            blocks before conversations, the end last; what a reader would refuse is not written
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
  // epoch and publisher of `record` do not travel. Errors: the sink's; kCorruption where nobody
  // could import it (block_proof.h): it is not in the file then.
  Result<uint64_t> add_block(BlockRecord record, std::span<const std::string> payloads,
                             uint64_t parent);
  // Errors: as add_block.
  Status add_conversation(const Conversation& conversation);
  Status end(uint64_t left_out);

  const TransferCounts& counts() const { return counts_; }
  uint64_t bytes() const { return *bytes_; }  // of the file, so far

 private:
  TransferWriter(std::unique_ptr<TarWriter> tar, std::shared_ptr<uint64_t> bytes,
                 TransferManifest manifest)
      : tar_(std::move(tar)), bytes_(std::move(bytes)), manifest_(std::move(manifest)) {}
  Status add(const std::string& name, std::string_view body);
  int64_t unix_s() const { return manifest_.made_unix_us / 1'000'000; }

  std::unique_ptr<TarWriter> tar_;
  std::shared_ptr<uint64_t> bytes_;
  TransferManifest manifest_;
  TransferDigest digest_;
  TransferCounts counts_;
};

}  // namespace ember
