// Import: what a store makes of a file that another has exported: first all of it is proven and
// compared with what is there, then it is entered.
//
// Journey    transfer_reader -> [import] -> record_intake
// Owns       16 bytes for each block of the file: its name in this store
// Invariant  prove() changes nothing, whatever the file holds; enter() takes only the very bytes
//            that prove() has seen; what is there already is compared and not written again
// Threads    one
// Not here   what can be proven of a file alone (transfer_reader.h), where it lies meanwhile
//            (spool.h)
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/record_intake.h"
#include "store/store_reader.h"
#include "store/transfer/transfer_reader.h"

namespace ember {

// Whose scope a scope of the file becomes. `shared` stays itself unless it is named here; a
// tenant's must be named.
using ScopeMap = std::map<std::string, std::string>;

struct ImportRules {
  ScopeMap scopes;
  // Whether these files are the tokenizer of that digest; empty: not looked at.
  using TokenizerCheck = std::function<Status(
      const BlockHash& digest, const std::vector<std::pair<std::string, std::string>>& files)>;
  TokenizerCheck check_tokenizer;
  // What is done of what was planned; false: stop.
  std::function<bool(uint64_t done, uint64_t planned)> progress;
};

struct ImportReport {
  IntakeCounts fresh;        // not there yet: what was entered, or would be
  IntakeCounts known;        // there already, and the same
  uint64_t differing = 0;    // blocks that are there with other latents, and stay as they are
  uint64_t newer_here = 0;   // conversations that have gone on here since
  uint64_t name_spaces = 0;  // of the file
  uint64_t left_out = 0;     // that the export could not have
  std::vector<std::string> remarks;  // what went without, and is no error
};

class Importer {
 public:
  // `known`: the store as it is; null: there is none yet. It outlives the importer.
  Importer(ImportRules rules, StoreReader* known) : rules_(std::move(rules)), known_(known) {}

  // Errors: the source's; those of TransferReader; kInvalidArgument (a tenant's scope that was not
  // mapped, a conversation that went on differently), kCancelled.
  Result<ImportReport> prove(ByteSource source);
  // The same bytes once more. What it has entered when it fails is whole and proven.
  Result<ImportReport> enter(ByteSource source, RecordIntake& intake);

 private:
  // Of a conversation: what of it is new here.
  struct Continuation {
    bool known = false;
    bool newer_here = false;
    uint32_t first_turn = 0;
  };
  // A block of the file in this store.
  struct Placed {
    BlockHash name;
    uint32_t scope = 0;  // a number of scope_names_
  };

  Result<ImportReport> pass(ByteSource source, RecordIntake* intake);
  Status map_scopes(const TransferManifest& manifest);
  Status take_tokenizer(const TransferItem& item, RecordIntake* intake, ImportReport& report);
  Status write_namespaces(const BlockHash& tokenizer, const NamespaceEntry::Files& files,
                          RecordIntake& intake, ImportReport& report);
  Status take_block(TransferItem& item, RecordIntake* intake, ImportReport& report);
  Status take_conversation(TransferItem& item, RecordIntake* intake, ImportReport& report);
  Status name_block(const TransferItem& item, BlockRecord& record);
  Result<Continuation> compare(const Conversation& conversation);

  ImportRules rules_;
  StoreReader* known_;
  // Of one pass.
  HashSecret secret_{};
  TransferManifest manifest_;
  std::map<std::string, uint32_t> scopes_;  // of the file: a number of scope_names_
  std::vector<std::string> scope_names_;    // as they are called here
  std::vector<Placed> placed_;              // by number - 1
  std::map<std::string, BlockHasher> hashers_;
  uint64_t done_ = 0;
  std::optional<BlockHash> proven_;  // the digest of what prove() has seen
};

}  // namespace ember
