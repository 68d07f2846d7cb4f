// A frame at a time, there and back.
#include "store/cache/shadow_keeper.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace ember {
namespace {

// What a process that is killed may lose, and what writing may cost a large store.
constexpr int64_t kLeastPeriodUs = 10'000'000;
constexpr uint64_t kBytesPerSecond = 32u << 10;

}  // namespace

void ShadowKeeper::remember_in(ShadowPlace place, uint64_t most_bytes) {
  if (duel().policy() == EvictionPolicy::kLeafLru) return;
  place_ = std::move(place);
  most_marks_ = most_bytes / 2 / (kShadowMarkBytes + 1);
  next_us_ = context_.clock.now_us() + kLeastPeriodUs;
  const std::optional<ShadowHead> known = read_shadow_head(place_);
  if (!known) return;
  std::error_code gone;
  file_bytes_ = std::filesystem::file_size(place_.path, gone);
  if (gone) file_bytes_ = 0;
  if (known->capacity_blocks > 0 && known->limit_bytes == context_.disk_limit_bytes) {
    context_.ledger.recall_disk_capacity(known->capacity_blocks);
  }
  if (known->policy == duel().policy()) ranks().recall_scores(known->scores, known->leader);
  reading_ = true;
  frames_left_ = shadow_frames(place_);
  ranks().expect_marks(known->written_unix_us);
}

void ShadowKeeper::advance() {
  if (!on() || task_out_) return;
  if (reading_) {
    if (ranks().wants_marks()) read_next();
    return;
  }
  if (writer_ == nullptr && due()) begin();
  if (writer_ != nullptr) write_next();
}

void ShadowKeeper::read_next() {
  if (frames_left_ == 0) {
    reading_ = false;
    ranks().marks_recalled();
    return;
  }
  const uint32_t number = --frames_left_;
  task_out_ = true;
  const auto marks = std::make_shared<std::vector<ShadowMark>>();
  const Ticket ticket =
      context_.device.run_host(HostLane::kRead, [place = place_, number, marks]() -> Status {
        // A frame that cannot be read is left out.
        *marks = read_shadow_frame(place, number).value_or(std::vector<ShadowMark>());
        std::reverse(marks->begin(), marks->end());
        return {};
      });
  context_.tickets.on(ticket, [this, marks](const Status&) {
    task_out_ = false;
    ranks().recall_marks(*marks);
  });
}

bool ShadowKeeper::due() {
  const bool able = context_.writable && !context_.loading && ranks().recalled();
  if (!able || duel().requests() == requests_kept_) return false;
  return closing_ || context_.clock.now_us() >= next_us_;
}

ShadowHead ShadowKeeper::head() {
  ShadowHead head;
  head.policy = duel().policy();
  head.leader = duel().leader();
  head.written_unix_us = context_.clock.unix_us();
  head.limit_bytes = context_.disk_limit_bytes;
  head.capacity_blocks = context_.ledger.disk_was_full() ? duel().capacity() : 0;
  head.scores = duel().scores();
  return head;
}

void ShadowKeeper::begin() {
  writer_ = std::make_shared<ShadowWriter>(place_);
  marks_written_ = 0;
  requests_at_begin_ = duel().requests();
  ranks().begin_walk();
}

void ShadowKeeper::write_next() {
  auto marks = std::make_shared<std::vector<ShadowMark>>();
  const bool first = marks_written_ == 0;
  const bool over = ranks().walk(kMarksPerFrame, *marks);
  marks_written_ += marks->size();
  const bool last = over || marks_written_ + kMarksPerFrame > most_marks_;
  task_out_ = true;
  const Ticket ticket = context_.device.run_host(
      HostLane::kRead, [writer = writer_, marks, first, last, head = head()]() -> Status {
        if (first) EMBER_TRY(writer->begin(head));
        if (!marks->empty()) EMBER_TRY(writer->add(*marks));
        return last ? writer->finish() : Status{};
      });
  context_.tickets.on(ticket, [this, last](const Status& status) { written(status, last); });
}

// What could not be written costs hits after the next restart, and is tried again in its time.
void ShadowKeeper::written(const Status& status, bool last) {
  task_out_ = false;
  if (status.ok() && !last) return;
  written_bytes_ += writer_->bytes();
  if (status.ok()) {
    file_bytes_ = writer_->bytes();
    requests_kept_ = requests_at_begin_;
  } else if (closing_) {
    give_up();
  }
  const auto paced_us = static_cast<int64_t>(writer_->bytes() * 1'000'000 / kBytesPerSecond);
  next_us_ = context_.clock.now_us() + std::max(kLeastPeriodUs, paced_us);
  writer_.reset();
}

void ShadowKeeper::close() { closing_ = true; }

}  // namespace ember
