// Warmer: has one prompt after the other brought into the cache by a running engine, behind the
// requests of everybody.
//
// Journey    warm_prompts -> [warmer] -> scheduler (what is not known), block_cache (disk to RAM)
// Invariant  one prompt at a time; it gives way to every request and goes on afterwards
// Threads    the command's; the engine's thread is asked by Holding
#pragma once

#include <cstdint>

#include "base/result.h"
#include "tools/commands/command_context.h"
#include "tools/commands/progress.h"
#include "tools/commands/talk/holding.h"
#include "tools/commands/talk/warm_prompts.h"

namespace ember {

enum class WarmState : uint8_t { kKnown, kComputed, kWouldCompute, kCut };

struct Warmed {
  WarmState state = WarmState::kKnown;
  uint64_t prompt_tokens = 0;
  uint64_t hit_tokens = 0;       // known before
  uint64_t computed_tokens = 0;  // or that would be
  uint64_t ram_tokens = 0;       // brought from the disk to RAM
  int64_t predicted_us = 0;      // to restore and compute
  int64_t took_us = 0;
};

class Warmer {
 public:
  // `to_ram`: what is known is read into RAM. All outlive it.
  Warmer(Holding& holding, CommandIo& io, bool to_ram)
      : holding_(holding), io_(io), to_ram_(to_ram), progress_(io) {}

  // Changes nothing. Errors: those of Holding::call.
  Result<Warmed> foresee(const WarmPrompt& prompt);
  // When the command is stopped, what was computed is kept: kCut. Errors: those of the request;
  // kCancelled when it was stopped before.
  Result<Warmed> warm(const std::string& name, const WarmPrompt& prompt);
  // Waits until all of it survives a crash. Errors: kIo, kCapacity, kCancelled.
  Status make_durable();

 private:
  Result<Foresight> look(const WarmPrompt& prompt);
  // That became known since it was foreseen.
  Result<uint64_t> tokens_since(const Warmed& before, const WarmPrompt& prompt);
  Status compute(const std::string& name, const WarmPrompt& prompt);
  Status compute_once(const std::string& name, const WarmPrompt& prompt);
  Status read_into_ram(const std::string& name, const WarmPrompt& prompt, uint64_t on_disk,
                       uint64_t& brought);

  Holding& holding_;
  CommandIo& io_;
  const bool to_ram_;
  Progress progress_;
};

}  // namespace ember
