// Entries, one after the other, and what they add up to.
#include "store/transfer/transfer_writer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "store/transfer/block_proof.h"

namespace ember {

Result<std::unique_ptr<TransferWriter>> TransferWriter::begin(ByteSink sink,
                                                              TransferManifest manifest) {
  auto bytes = std::make_shared<uint64_t>(0);
  auto counted = [bytes, sink = std::move(sink)](std::string_view piece) -> Status {
    *bytes += piece.size();
    return sink(piece);
  };
  std::unique_ptr<TransferWriter> writer(
      new TransferWriter(TarWriter::make(std::move(counted)), bytes, std::move(manifest)));
  EMBER_TRY(writer->add(std::string(kManifestName), encode_manifest(writer->manifest_)));
  return writer;
}

Status TransferWriter::add(const std::string& name, std::string_view body) {
  EMBER_TRY(tar_->add(name, body, unix_s()));
  digest_.add(name, body);
  return {};
}

Status TransferWriter::add_tokenizer_file(const BlockHash& digest, const std::string& name,
                                          std::string_view bytes) {
  return add(tokenizer_entry_name(digest, name), bytes);
}

Result<uint64_t> TransferWriter::add_block(BlockRecord record,
                                           std::span<const std::string> payloads,
                                           uint64_t parent) {
  const uint64_t number = counts_.blocks + counts_.tails + 1;
  EMBER_CHECK(parent < number, "a parent comes before its children");
  const auto& names = manifest_.name_spaces;
  const auto name = std::find_if(names.begin(), names.end(), [&record](const auto& one) {
    return one.name == record.name_space && one.layout;
  });
  EMBER_CHECK(name != names.end(), "the manifest tells the layout of each block");
  const std::vector<std::string_view> views(payloads.begin(), payloads.end());
  EMBER_TRY(prove_block(record, views, *name->layout));
  record.hash = numbered(number);
  record.parent = numbered(parent);
  record.epoch = 0;
  record.publisher.clear();
  EMBER_TRY(add(block_entry_name(number), encode_block_entry(record, payloads)));
  ++(record.tail ? counts_.tails : counts_.blocks);
  return number;
}

Status TransferWriter::add_conversation(const Conversation& conversation) {
  EMBER_TRY(prove_conversation(conversation));
  EMBER_TRY(
      add(conversation_entry_name(conversation.id), encode_conversation_entry(conversation)));
  ++counts_.conversations;
  return {};
}

Status TransferWriter::end(uint64_t left_out) {
  const TransferEnd end{.counts = counts_, .left_out = left_out, .digest = digest_.value()};
  EMBER_TRY(tar_->add(std::string(kEndName), encode_end(end), unix_s()));
  return tar_->end();
}

}  // namespace ember
