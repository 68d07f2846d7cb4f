// Parts editor: what an editor at rest and one inside a holder have in common: changes of a store's
// parts, run where nothing else writes.
//
// Journey    store_editor -> [parts_editor] -> disk_tier, conversations, quarantine
// Invariant  every change runs within on_parts()
// Threads    any but the engine's, one caller at a time
#pragma once

#include <string>

#include "kernels/device.h"
#include "store/inspect/parts_reader.h"
#include "store/store_editor.h"

namespace ember {

class PartsEditor : public StoreEditor {
 public:
  // The parts outlive the editor.
  explicit PartsEditor(const StoreReaderParts& parts) : parts_(parts) {}

  Status remove_conversation(const std::string& id) override;
  Status add_conversation(const Conversation& conversation) override;
  Result<bool> condemn(const BlockRecord& record, bool has_children,
                       const std::string& reason) override;
  Result<DiskTier::Reindexed> reindex(bool dry_run) override;
  Result<bool> drop_quarantined(const std::string& file) override;
  Status retire_epoch(uint32_t epoch) override;
  Status compact() override;

 protected:
  // Runs `work` where nothing else writes, and waits for it.
  virtual Status on_parts(HostTask work) = 0;
  // Tells the running cache that the block's stored bytes are wrong; it writes them again where it
  // has them. False: there is no cache, and nobody else knows of the block.
  virtual bool tell_cache(const BlockHash& hash) = 0;
  const StoreReaderParts& parts() const { return parts_; }

 private:
  const StoreReaderParts parts_;
};

}  // namespace ember
