// Store editor: a store as one changes it by hand: what is to go, what was proven wrong, what is
// reclaimed, whoever holds it. The counterpart of store_reader.h.
//
// Journey    rm, gc, repair, quarantine -> [store_editor] -> disk_tier, conversations, quarantine
//            (and a holder's block_cache)
// Owns       at rest the store's lock, so that nobody opens it meanwhile; in a holder nothing
// Invariant  only what is named goes, children before parents; what a request uses, a pin keeps, or
//            something that stays hangs on, stays and is counted. A kill leaves a store in which
//            that much less is there, never one that is wrong
// Threads    any but the engine's, one caller at a time for each editor
// Not here   what is to go: pure plans over the block tree (tools/commands/change/removal_plan.h)
//
// Two implementations: of a store at rest, opened for writing (edit/resting_editor.cc), and within
// the process that holds it (edit/live_editor.h). What both do with the parts is one
// (edit/parts_editor.h): on_parts() runs where nothing else writes. What takes blocks in belongs
// beside erase().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/encryption.h"
#include "store/forget.h"
#include "store/live_edits.h"
#include "store/store_reader.h"

namespace ember {

class StoreEditor {
 public:
  virtual ~StoreEditor() = default;

  // The same store to look at, as changed so far; lives as long as the editor.
  virtual StoreReader& reader() = 0;

  // Writes down what running requests have committed. Errors: kIo, kCancelled.
  virtual Status settle() = 0;

  // How many items are done; false: stop, and leave the rest.
  using OnProgress = std::function<bool(uint64_t done)>;
  // Items in an order in which children come before their parents. Durable when it returns.
  // Errors: kBusy while the holder still reads the store, kUnsupported, kIo, kCapacity; kCancelled.
  virtual Result<Erased> erase(std::span<const EraseItem> items, const OnProgress& on_progress) = 0;
  // A transcript; not its blocks and tails. Errors: kInvalidArgument without one, kIo.
  virtual Status remove_conversation(const std::string& id) = 0;
  // A new one with all of its turns. What cannot be written whole is taken back; a kill leaves one
  // with fewer turns. Errors: kInvalidArgument where there is one of its id, kIo, kCapacity.
  virtual Status add_conversation(const Conversation& conversation) = 0;
  // Errors: as forget_scope; kBusy in a holder while requests run.
  virtual Result<ForgetReport> forget(const ForgetRequest& request) = 0;

  // The bytes of this block or tail were proven wrong, for this reason: kept aside, then gone; its
  // record stays as a hole where `has_children`. False: it has changed since and is in peace.
  // Errors: kIo, kCapacity.
  virtual Result<bool> condemn(const BlockRecord& record, bool has_children,
                               const std::string& reason) = 0;
  // See DiskTier::reindex. Errors: as there.
  virtual Result<DiskTier::Reindexed> reindex(bool dry_run) = 0;
  // Removes one file of the quarantine. False: there is none of this name. Errors: kIo.
  virtual Result<bool> drop_quarantined(const std::string& file) = 0;

  // Puts what is live in an epoch again and gives back its bytes. Errors: kCapacity, kIo.
  virtual Status retire_epoch(uint32_t epoch) = 0;
  // Rewrites both databases' tables into as few bytes as it takes. Errors: kCapacity, kIo.
  virtual Status compact() = 0;
};

// The parts of a store at rest, opened for writing: what nobody else can open meanwhile.
struct WritableParts {
  std::unique_ptr<StoreDirectory> directory;
  std::unique_ptr<Quarantine> quarantine;
  std::unique_ptr<DiskTier> disk;
  std::unique_ptr<Conversations> conversations;

  // Never makes a store. `disk_bytes`: its limit, as it is used with. Errors: those of the parts,
  // naming the path; kBusy naming the process that holds it; kInvalidArgument where there is no
  // store, or without the right key; kIo where it can only be read.
  static Result<WritableParts> open(const std::string& path, const EncryptionOptions& encryption,
                                    uint64_t disk_bytes);
};

// Errors: as WritableParts::open.
Result<std::unique_ptr<StoreEditor>> open_resting_editor(const std::string& path,
                                                         const EncryptionOptions& encryption,
                                                         uint64_t disk_bytes);

}  // namespace ember
