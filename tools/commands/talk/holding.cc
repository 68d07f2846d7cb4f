// Holding: mailbox and socket, opened after the engine and closed before it.
#include "tools/commands/talk/holding.h"

#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "store/store_directory.h"
#include "tools/commands/messages.h"
#include "tools/commands/version.h"

namespace ember {
namespace {

constexpr int64_t kCallPatienceUs = 60'000'000;
constexpr int64_t kIdleWaitUs = 100'000;
constexpr std::chrono::milliseconds kWaitSlice{50};

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

Status Holding::call(const std::function<void()>& work) {
  return mailbox_.call(work, kCallPatienceUs);
}

Status Holding::wait_for(const std::function<Ticket()>& begin, const StopAsked& stopped) {
  const auto ended = std::make_shared<std::promise<Status>>();
  std::future<Status> status = ended->get_future();
  EMBER_TRY(call([&] {
    const Ticket ticket = begin();
    if (!ticket) return ended->set_value({});
    engine_.scheduler().watch(ticket,
                              [ended](const Status& outcome) { ended->set_value(outcome); });
  }));
  while (!is_stopped(stopped)) {
    if (status.wait_for(kWaitSlice) == std::future_status::ready) return status.get();
  }
  return {ErrorCode::kCancelled, "cut short"};
}

ChatSession& Holding::keep(std::unique_ptr<ChatSession> session, ConversationClaim claim) {
  sessions_.push_back({std::move(claim), std::move(session)});
  return *sessions_.back().session;
}

void Holding::let_go(ChatSession& session) {
  std::erase_if(sessions_, [&session](const Kept& kept) { return kept.session.get() == &session; });
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
