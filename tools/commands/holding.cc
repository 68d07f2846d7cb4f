// Holding: mailbox and socket, opened after the engine and closed before it.
#include "tools/commands/holding.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "store/store_directory.h"
#include "tools/commands/version.h"

namespace ember {
namespace {

constexpr int64_t kCallPatienceUs = 60'000'000;
constexpr int64_t kIdleWaitUs = 100'000;

}  // namespace

Holding::Holding(Engine& engine, const EngineFlags& flags, ForeignCommand foreign)
    : engine_(engine),
      flags_(flags),
      store_(flags.store.empty() ? default_store_path() : flags.store),
      foreign_(std::move(foreign)),
      mailbox_(engine.device(), engine.scheduler()) {
  const StoreState state = engine.cache().health().state;
  const bool held = state == StoreState::kOk || state == StoreState::kDegraded;
  if (!foreign_ || !held) return;
  Result<std::unique_ptr<HolderServer>> server = HolderServer::start(
      {.folder = store_, .program = kProgramVersion},
      [this](const HolderRequest& request, HolderStreams& streams) {
        return foreign_(request, streams, *this);
      });
  if (server.ok()) {
    server_ = std::move(server).value();
  } else {
    print_warning("other commands cannot reach this one: " + server.error().message);
  }
}

Holding::~Holding() {
  mailbox_.close();
  server_.reset();
}

bool Holding::call(const std::function<void()>& work) {
  return mailbox_.call(work, kCallPatienceUs);
}

ChatSession& Holding::keep(std::unique_ptr<ChatSession> session) {
  return **sessions_.insert(std::move(session)).first;
}

void Holding::let_go(ChatSession& session) {
  std::erase_if(sessions_, [&session](const auto& kept) { return kept.get() == &session; });
}

bool Holding::keeps(const std::string& conversation) const {
  return std::any_of(sessions_.begin(), sessions_.end(), [&conversation](const auto& kept) {
    return kept->conversation().id == conversation;
  });
}

void run_beside(Holding& holding, const std::function<void()>& work,
                const std::function<bool(bool ended)>& also) {
  std::atomic<bool> ended{false};
  std::thread thread([&] {
    work();
    ended = true;
    holding.wake();
  });
  Scheduler& scheduler = holding.engine().scheduler();
  while (true) {
    const bool over = ended;
    if (!also(over) && over) break;
    scheduler.tick(system_clock().now_us() + kIdleWaitUs);
  }
  thread.join();
}

}  // namespace ember
