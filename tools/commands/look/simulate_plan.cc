// Capacities between what was asked for and what a simulation takes.
#include "tools/commands/look/simulate_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "base/bytes.h"
#include "store/disk_plan.h"

namespace ember {
namespace {

constexpr double kDefaultPercents[] = {1, 2, 5, 10, 20, 50, 100};
constexpr double kAroundPresent[] = {0.25, 0.5, 2, 4};

std::optional<double> parse_percent(const std::string& word) {
  if (word.empty() || word.back() != '%') return std::nullopt;
  const std::string digits = word.substr(0, word.size() - 1);
  char* end = nullptr;
  const double percent = std::strtod(digits.c_str(), &end);
  const bool whole = !digits.empty() && end == digits.c_str() + digits.size();
  if (!whole || !(percent > 0) || percent > 100) return std::nullopt;
  return percent;
}

uint64_t share_for_blocks(uint64_t disk_bytes) {
  const Result<DiskPlan> plan = plan_disk(disk_bytes);
  return plan.ok() ? plan->blocks_bytes : 0;
}

uint64_t blocks_in(double bytes, double block_bytes) {
  return std::max<uint64_t>(1, static_cast<uint64_t>(bytes / block_bytes));
}

PlannedCapacity of_percent(double percent, const CapacityBasis& basis) {
  const double blocks = static_cast<double>(basis.distinct_blocks) * percent / 100;
  PlannedCapacity planned;
  planned.blocks = std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(blocks)));
  const double bytes = static_cast<double>(planned.blocks) * basis.block_bytes;
  if (bytes >= static_cast<double>(share_for_blocks(kLeastDiskBytes))) {
    planned.disk_bytes = disk_bytes_for(static_cast<uint64_t>(bytes));
  }
  return planned;
}

Result<PlannedCapacity> of_size(uint64_t disk_bytes, const CapacityBasis& basis) {
  if (basis.block_bytes <= 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "capacities: found " + human_bytes(disk_bytes) +
                     ", but how large a block is is not known: expected shares as 10%, or "
                     "--block-bytes"};
  }
  if (disk_bytes < kLeastDiskBytes) {
    return Error{ErrorCode::kInvalidArgument,
                 "capacities: found " + human_bytes(disk_bytes) + ", expected at least " +
                     human_bytes(kLeastDiskBytes) + ", the least store"};
  }
  const auto share = static_cast<double>(share_for_blocks(disk_bytes));
  return PlannedCapacity{blocks_in(share, basis.block_bytes), disk_bytes, false};
}

std::vector<CapacityAsked> default_capacities(const CapacityBasis& basis) {
  std::vector<CapacityAsked> asked;
  const bool tells = basis.present_blocks > 0 && basis.present_blocks < 4 * basis.distinct_blocks;
  if (!tells) {
    for (const double percent : kDefaultPercents) asked.push_back({0, percent});
    return asked;
  }
  for (const double times : kAroundPresent) {
    const double bytes = times * static_cast<double>(basis.present_disk_bytes);
    if (bytes >= static_cast<double>(kLeastDiskBytes)) {
      asked.push_back({static_cast<uint64_t>(bytes), 0});
    }
  }
  return asked;
}

}  // namespace

Result<std::vector<CapacityAsked>> parse_capacities(const std::string& text) {
  std::vector<CapacityAsked> asked;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const std::optional<double> percent = parse_percent(word);
    const std::optional<uint64_t> bytes = percent ? std::nullopt : parse_bytes(word);
    if (!percent && (!bytes || *bytes == 0)) {
      return Error{ErrorCode::kInvalidArgument,
                   "capacities: '" + word +
                       "' is none, expected for example 512MiB, 20GiB or 10%, with commas between"};
    }
    asked.push_back({bytes.value_or(0), percent.value_or(0)});
  }
  if (asked.empty()) return Error{ErrorCode::kInvalidArgument, "capacities: found none"};
  return asked;
}

uint64_t disk_bytes_for(uint64_t blocks_bytes) {
  uint64_t low = kLeastDiskBytes;
  uint64_t high = low;
  while (share_for_blocks(high) < blocks_bytes && high < (uint64_t{1} << 62)) high *= 2;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    (share_for_blocks(middle) < blocks_bytes ? low : high) =
        share_for_blocks(middle) < blocks_bytes ? middle + 1 : middle;
  }
  return low;
}

Result<std::vector<PlannedCapacity>> plan_capacities(const std::vector<CapacityAsked>& asked,
                                                     const CapacityBasis& basis) {
  std::vector<PlannedCapacity> planned;
  for (const CapacityAsked& one : asked.empty() ? default_capacities(basis) : asked) {
    if (one.disk_bytes == 0) {
      planned.push_back(of_percent(one.percent, basis));
    } else {
      EMBER_ASSIGN(const PlannedCapacity sized, of_size(one.disk_bytes, basis));
      planned.push_back(sized);
    }
  }
  if (basis.present_blocks > 0) {
    planned.push_back({basis.present_blocks, basis.present_disk_bytes, true});
  }
  // The present one before others of its size, which then go.
  std::sort(planned.begin(), planned.end(), [](const auto& a, const auto& b) {
    return a.blocks != b.blocks ? a.blocks < b.blocks : a.present > b.present;
  });
  const auto same = [](const auto& a, const auto& b) { return a.blocks == b.blocks; };
  planned.erase(std::unique(planned.begin(), planned.end(), same), planned.end());
  return planned;
}

}  // namespace ember
