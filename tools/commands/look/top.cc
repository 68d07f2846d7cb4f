// top: asks, waits, draws, until q.
#include "tools/commands/look/top.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/look/top_model.h"
#include "tools/commands/look/top_screen.h"
#include "tools/commands/stop_on_signal.h"

namespace ember {
namespace {

constexpr int64_t kDefaultIntervalUs = 2'000'000;
constexpr int64_t kLeastIntervalUs = 1'000'000;
constexpr int64_t kMostIntervalUs = 64'000'000;
constexpr int kKeyWaitMs = 100;
// The hottest prefixes need a look at every record: rarely, and the rarer the longer it takes.
constexpr int64_t kHottestPeriodUs = 10'000'000;
constexpr int64_t kHottestShare = 50;
constexpr const char* kHottestLimit = "20";
constexpr std::chrono::seconds kPartingPatience{2};

// What one round of questions brought.
struct Round {
  TopSample sample;
  std::optional<std::vector<HotPrefix>> hottest;
  int64_t hottest_took_us = 0;
};

// A command with the flags that say which store.
std::vector<std::string> words_of(std::vector<std::string> words, const StoreChoice& store) {
  words.insert(words.end(), {"--json", "--store", store.resolved()});
  if (!store.encryption.key_file.empty()) {
    words.insert(words.end(), {"--key-file", store.encryption.key_file});
  } else if (store.encryption.on) {
    words.emplace_back("--encrypt");
  }
  if (store.read_only) words.emplace_back("--read-only");
  return words;
}

Result<Round> ask_round(const TopOptions& options, const CommandAsker& ask, bool hottest) {
  Round round;
  EMBER_ASSIGN(const std::string stat, ask(words_of({"stat", "--brief"}, options.store)));
  EMBER_ASSIGN(round.sample, parse_top_sample(stat, system_clock().unix_us()));
  if (round.sample.live) {
    std::ifstream io("/proc/" + std::to_string(round.sample.holder_pid) + "/io");
    add_drive_bytes(std::string{std::istreambuf_iterator<char>(io), {}}, round.sample);
  }
  if (!hottest) return round;
  const int64_t began_us = system_clock().now_us();
  EMBER_ASSIGN(const std::string tree,
               ask(words_of({"tree", "--depth", "1", "--sort", "hits", "--limit", kHottestLimit},
                            options.store)));
  EMBER_ASSIGN(round.hottest, parse_hot_prefixes(tree));
  round.hottest_took_us = system_clock().now_us() - began_us;
  return round;
}

// The samples so far, and when to ask for the next.
class Watching {
 public:
  Watching(const TopOptions& options, CommandAsker ask)
      : options_(options),
        ask_(std::move(ask)),
        interval_us_(options.interval_us.value_or(kDefaultIntervalUs)) {}

  // Errors: those of the first round, when there is nothing to show; later ones are told in frames.
  Status first() {
    EMBER_ASSIGN(Round round, ask_round(options_, ask_, true));
    take(std::move(round));
    return {};
  }
  Status next() {
    Result<Round> round = ask_round(options_, ask_, hottest_due());
    if (!round.ok()) return round.error();
    take(std::move(round).value());
    return {};
  }

  bool due() const { return !asked_ && system_clock().now_us() >= next_us_; }
  void begin() {
    asked_ = std::async(std::launch::async, [this, hottest = hottest_due()] {
      return ask_round(options_, ask_, hottest);
    });
  }
  // Whether an answer has come; what went wrong is kept as the trouble.
  bool answered() {
    if (!asked_ || asked_->wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      return false;
    }
    Result<Round> round = asked_->get();
    asked_.reset();
    trouble_.clear();
    if (round.ok()) {
      take(std::move(round).value());
    } else {
      trouble_ = round.error().message;
      next_us_ = system_clock().now_us() + interval_us_;
    }
    return true;
  }
  // False: somebody was asked who does not answer.
  bool part() {
    return !asked_ || asked_->wait_for(kPartingPatience) == std::future_status::ready;
  }

  void change_interval(bool longer) {
    interval_us_ = std::clamp(longer ? interval_us_ * 2 : interval_us_ / 2, kLeastIntervalUs,
                              kMostIntervalUs);
    next_us_ = std::min(next_us_, system_clock().now_us() + interval_us_);
  }
  int64_t interval_us() const { return interval_us_; }
  const TopHistory& history() const { return history_; }
  const std::vector<HotPrefix>& hottest() const { return hottest_; }
  const std::string& trouble() const { return trouble_; }

 private:
  bool hottest_due() const { return system_clock().now_us() >= hottest_us_; }
  void take(Round round) {
    const int64_t now_us = system_clock().now_us();
    history_.add(std::move(round.sample));
    next_us_ = now_us + interval_us_;
    if (!round.hottest) return;
    hottest_ = std::move(*round.hottest);
    hottest_us_ = now_us + std::max(kHottestPeriodUs, kHottestShare * round.hottest_took_us);
  }

  const TopOptions& options_;
  const CommandAsker ask_;
  int64_t interval_us_;
  TopHistory history_;
  std::vector<HotPrefix> hottest_;
  std::string trouble_;
  int64_t next_us_ = 0;
  int64_t hottest_us_ = 0;
  std::optional<std::future<Result<Round>>> asked_;
};

void pause(const Watching& watching, const CommandIo& io) {
  const int64_t until_us = system_clock().now_us() + watching.interval_us();
  while (system_clock().now_us() < until_us && !io.stopped() && io.out) {
    std::this_thread::sleep_for(std::chrono::milliseconds(kKeyWaitMs));
  }
}

Result<int> print_once(Watching& watching, const TopOptions& options, CommandIo& io) {
  if (watching.history().latest().live) {
    pause(watching, io);
    EMBER_TRY(watching.next());
  }
  if (options.json) {
    io.out << top_json(watching.history(), watching.hottest()) << std::endl;
    return kExitOk;
  }
  const TopView view{.width = io.width, .interval_us = watching.interval_us()};
  for (const TopLine& line : top_frame(watching.history(), watching.hottest(), view)) {
    io.out << line.text << '\n';
  }
  io.out << std::flush;
  return kExitOk;
}

// Until the reader has enough.
Result<int> print_objects(Watching& watching, CommandIo& io) {
  while (!io.stopped()) {
    io.out << top_json(watching.history(), watching.hottest()) << std::endl;
    if (!io.out) break;
    pause(watching, io);
    EMBER_TRY(watching.next());
  }
  return kExitOk;
}

class View {
 public:
  View(Watching& watching, TopScreen& screen) : watching_(watching), screen_(screen) {}

  void run(const CommandIo& io) {
    draw();
    while (!io.stopped()) {
      const TopKey key = screen_.key(kKeyWaitMs);
      if (key == TopKey::kQuit || key == TopKey::kGone) return;
      apply(key);
      if (!paused_ && watching_.due()) watching_.begin();
      if (watching_.answered() || key != TopKey::kNone) draw();
    }
  }

 private:
  void apply(TopKey key) {
    if (key == TopKey::kPause) paused_ = !paused_;
    if (key == TopKey::kHelp) help_ = !help_;
    if (key == TopKey::kLonger || key == TopKey::kShorter) {
      watching_.change_interval(key == TopKey::kLonger);
    }
  }
  void draw() {
    const TopView view{.width = screen_.width(),
                       .height = screen_.height(),
                       .unicode = screen_.unicode(),
                       .paused = paused_,
                       .help = help_,
                       .interval_us = watching_.interval_us(),
                       .trouble = watching_.trouble()};
    screen_.draw(top_frame(watching_.history(), watching_.hottest(), view));
  }

  Watching& watching_;
  TopScreen& screen_;
  bool paused_ = false;
  bool help_ = false;
};

}  // namespace

Result<int> run_top(const TopOptions& options, CommandContext& context) {
  const int64_t interval_us = options.interval_us.value_or(kDefaultIntervalUs);
  if (interval_us < kLeastIntervalUs || interval_us > kMostIntervalUs) {
    return Error{ErrorCode::kInvalidArgument, "--interval: expected 1s to 64s"};
  }
  if (!context.ask) {
    return Error{ErrorCode::kInvalidArgument, "top runs in the terminal that it was called in"};
  }
  const StopOnSignal signals;
  context.io.cancelled = StopOnSignal::asked;
  std::unique_ptr<TopScreen> screen;
  Watching watching(options, context.ask);
  EMBER_TRY(watching.first());
  if (options.once) return print_once(watching, options, context.io);
  if (options.json) return print_objects(watching, context.io);
  EMBER_ASSIGN(screen, TopScreen::open());
  View(watching, *screen).run(context.io);
  screen.reset();
  // Whoever does not answer cannot be waited for, nor its thread be ended.
  if (!watching.part()) std::_Exit(kExitOk);
  return kExitOk;
}

}  // namespace ember
