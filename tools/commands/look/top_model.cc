// What samples say: sums and rates of a history, and reading what the commands printed.
#include "tools/commands/look/top_model.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

uint64_t count_of(const Json& json, const char* name) {
  return json.contains(name) ? json.at(name).get<uint64_t>() : 0;
}

// Throws the JSON library's exceptions.
void read_holder(const Json& holder, TopSample& sample) {
  for (size_t i = 0; i < kTierCount; ++i) {
    const Json& tier = holder.at("tiers").at(std::string(tier_name(static_cast<Tier>(i))));
    sample.tiers[i] = {count_of(tier, "blocks"), count_of(tier, "capacity_blocks"),
                       count_of(tier, "restored_tokens")};
  }
  sample.disk_limit_bytes = count_of(holder, "disk_limit_bytes");
  sample.pinned_blocks = count_of(holder, "pinned_blocks");
  sample.waiting_blocks = count_of(holder, "waiting_blocks");
  sample.scrubbed_bytes = count_of(holder, "scrubbed_bytes");
  sample.scrub_passes = count_of(holder, "scrub_passes");
  sample.last_scrub_unix_us = holder.at("last_scrub_unix_us").get<int64_t>();
  sample.warmed_blocks = count_of(holder, "warmed_blocks");
  sample.warm_up_left = count_of(holder, "warm_up_left");
  sample.loading = holder.at("loading").get<bool>();
  if (!holder.contains("requests")) return;
  const Json& requests = holder.at("requests");
  sample.running = count_of(requests, "running");
  sample.queued = count_of(requests, "queued");
  sample.prompt_tokens = count_of(requests, "prompt_tokens");
  sample.answer_tokens = count_of(requests, "answer_tokens");
}

double rate(uint64_t now, uint64_t before, double seconds) {
  return now > before ? static_cast<double>(now - before) / seconds : 0;
}

std::optional<double> rate(const std::optional<uint64_t>& now,
                           const std::optional<uint64_t>& before, double seconds) {
  if (!now || !before) return std::nullopt;
  return rate(*now, *before, seconds);
}

}  // namespace

uint64_t TopSample::restored_tokens() const {
  return std::accumulate(tiers.begin(), tiers.end(), uint64_t{0},
                         [](uint64_t sum, const TopTier& t) { return sum + t.restored_tokens; });
}

Result<TopSample> parse_top_sample(std::string_view stat_json, int64_t unix_us) {
  TopSample sample;
  sample.unix_us = unix_us;
  try {
    const Json json = Json::parse(stat_json);
    sample.path = json.at("path").get<std::string>();
    sample.health = json.at("health").get<std::string>();
    sample.holder_pid = json.at("holder_pid").get<int>();
    sample.live = json.at("live").get<bool>() && json.contains("holder");
    sample.disk_bytes = count_of(json, "disk_bytes");
    if (json.contains("limits")) {
      sample.disk_limit_bytes = count_of(json.at("limits"), "disk_bytes");
      sample.eviction = json.at("limits").at("eviction").get<std::string>();
    }
    if (sample.live) read_holder(json.at("holder"), sample);
  } catch (const Json::exception& error) {
    return Error{ErrorCode::kCorruption, std::string("what stat told: ") + error.what()};
  }
  return sample;
}

Result<std::vector<HotPrefix>> parse_hot_prefixes(std::string_view tree_lines) {
  std::vector<HotPrefix> hottest;
  while (!tree_lines.empty()) {
    const size_t end = std::min(tree_lines.find('\n'), tree_lines.size());
    const std::string_view line = tree_lines.substr(0, end);
    tree_lines.remove_prefix(std::min(end + 1, tree_lines.size()));
    if (line.empty()) continue;
    try {
      const Json json = Json::parse(line);
      hottest.push_back({json.at("hits").get<uint64_t>(), json.at("tokens").get<uint64_t>(),
                         json.value("text", std::string())});
    } catch (const Json::exception& error) {
      return Error{ErrorCode::kCorruption, std::string("what tree told: ") + error.what()};
    }
  }
  return hottest;
}

void add_drive_bytes(std::string_view proc_io, TopSample& sample) {
  const auto find = [proc_io](std::string_view name) -> std::optional<uint64_t> {
    const size_t at = proc_io.find(name);
    if (at == std::string_view::npos || (at > 0 && proc_io[at - 1] != '\n')) return std::nullopt;
    const char* digits = proc_io.data() + at + name.size();
    uint64_t bytes = 0;
    const auto [rest, error] = std::from_chars(digits, proc_io.data() + proc_io.size(), bytes);
    return error == std::errc() ? std::optional(bytes) : std::nullopt;
  };
  sample.read_bytes = find("read_bytes: ");
  sample.written_bytes = find("write_bytes: ");
}

void TopHistory::add(TopSample sample) {
  const bool goes_on = !samples_.empty() && samples_.back().live == sample.live &&
                       samples_.back().holder_pid == sample.holder_pid &&
                       samples_.back().unix_us < sample.unix_us;
  if (!goes_on) samples_.clear();
  // The last one before the span stays: what was counted within it begins there.
  while (samples_.size() > 1 && sample.unix_us - samples_[1].unix_us >= kSpanUs) {
    samples_.pop_front();
  }
  samples_.push_back(std::move(sample));
}

TopRates TopHistory::rates() const {
  TopRates rates;
  if (samples_.size() < 2 || !latest().live) return rates;
  const TopSample& now = samples_.back();
  const TopSample& then = samples_[samples_.size() - 2];
  const double seconds = static_cast<double>(now.unix_us - then.unix_us) / 1e6;
  rates.known = true;
  for (size_t i = 0; i < kTierCount; ++i) {
    rates.restored[i] =
        rate(now.tiers[i].restored_tokens, then.tiers[i].restored_tokens, seconds);
    rates.restored_all += rates.restored[i];
  }
  rates.prompt = rate(now.prompt_tokens, then.prompt_tokens, seconds);
  rates.answer = rate(now.answer_tokens, then.answer_tokens, seconds);
  rates.scrubbed = rate(now.scrubbed_bytes, then.scrubbed_bytes, seconds);
  rates.read = rate(now.read_bytes, then.read_bytes, seconds);
  rates.written = rate(now.written_bytes, then.written_bytes, seconds);
  return rates;
}

// The latest sample that is not later.
const TopSample* TopHistory::before(int64_t unix_us) const {
  const TopSample* found = nullptr;
  for (const TopSample& sample : samples_) {
    if (sample.unix_us <= unix_us) found = &sample;
  }
  return found;
}

std::optional<double> TopHistory::hit_share(int64_t from_us, int64_t to_us) const {
  const TopSample* to = before(to_us);
  if (to == nullptr || !to->live) return std::nullopt;
  const TopSample* from = before(from_us);
  if (from == nullptr) from = &samples_.front();
  const uint64_t restored = to->restored_tokens() - from->restored_tokens();
  const uint64_t all = restored + to->prompt_tokens - from->prompt_tokens;
  if (all == 0) return std::nullopt;
  return static_cast<double>(restored) / static_cast<double>(all);
}

std::optional<double> TopHistory::hit_share() const {
  return hit_share(samples_.front().unix_us, samples_.back().unix_us);
}

std::string top_json(const TopHistory& history, const std::vector<HotPrefix>& hottest) {
  const TopSample& now = history.latest();
  Json json = {{"unix_us", now.unix_us},         {"path", now.path},
               {"health", now.health},           {"live", now.live},
               {"holder_pid", now.holder_pid},   {"disk_bytes", now.disk_bytes},
               {"disk_limit_bytes", now.disk_limit_bytes}};
  if (now.live) {
    for (size_t i = 0; i < kTierCount; ++i) {
      json["tiers"][std::string(tier_name(static_cast<Tier>(i)))] = {
          {"blocks", now.tiers[i].blocks},
          {"capacity_blocks", now.tiers[i].capacity},
          {"restored_tokens", now.tiers[i].restored_tokens}};
    }
    json.update(Json{{"running", now.running},
                     {"queued", now.queued},
                     {"prompt_tokens", now.prompt_tokens},
                     {"answer_tokens", now.answer_tokens},
                     {"pinned_blocks", now.pinned_blocks},
                     {"waiting_blocks", now.waiting_blocks},
                     {"scrubbed_bytes", now.scrubbed_bytes},
                     {"scrub_passes", now.scrub_passes},
                     {"warmed_blocks", now.warmed_blocks},
                     {"warm_up_left", now.warm_up_left}});
  }
  const TopRates rates = history.rates();
  if (rates.known) {
    json["per_second"] = {{"restored_tokens", rates.restored_all},
                          {"prompt_tokens", rates.prompt},
                          {"answer_tokens", rates.answer},
                          {"scrubbed_bytes", rates.scrubbed}};
    if (rates.read) json["per_second"]["read_bytes"] = *rates.read;
    if (rates.written) json["per_second"]["written_bytes"] = *rates.written;
    if (const auto share = history.hit_share()) json["hit_share"] = *share;
  }
  json["hottest"] = Json::array();
  for (const HotPrefix& prefix : hottest) {
    json["hottest"].push_back(
        {{"hits", prefix.hits}, {"tokens", prefix.tokens}, {"text", prefix.text}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ember
