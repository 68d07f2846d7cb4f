// Journey: the tiers that a latent passes through, named once for reports, CLI columns and tests.
//
// Journey    text -> tokens -> block_hash -> radix_index -> tiers -> attention
// Invariant  the names and numbers are public: they appear in reports and never change
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ember {

// The tiers, from the fastest down. A tier's label is its name here.
enum class Tier : uint8_t { kDevice = 0, kHost = 1, kDisk = 2, kRemote = 3 };
inline constexpr size_t kTierCount = 4;
inline constexpr std::array<Tier, kTierCount> kAllTiers = {Tier::kDevice, Tier::kHost, Tier::kDisk,
                                                           Tier::kRemote};

constexpr std::string_view tier_name(Tier tier) {
  constexpr std::array<std::string_view, kTierCount> kNames = {"device", "host", "disk", "remote"};
  return kNames[static_cast<size_t>(tier)];
}

}  // namespace ember
