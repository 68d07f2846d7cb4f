// Flags of a store.
#include "tools/store_flags.h"

#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "base/bytes.h"

namespace ember {
namespace {

template <typename Target>
CLI::Option* add_bytes(CLI::App& app, const std::string& flag, Target& target,
                       const std::string& help, uint64_t least) {
  return app
      .add_option_function<std::string>(
          flag,
          [flag, &target, least](const std::string& text) {
            const std::optional<uint64_t> bytes = parse_bytes(text);
            if (!bytes || *bytes < least) {
              throw CLI::ValidationError(flag, "'" + text +
                                                   "' is no size, expected for example "
                                                   "4096, 512MiB or 20GiB");
            }
            target = *bytes;
          },
          help)
      ->type_name("SIZE");
}

constexpr const char* kSettingsGroup = "Store";

void add_limits_of_the_drive(CLI::App& app, StoreSettings& settings) {
  add_bytes(app, "--write-bytes-per-day", settings.write_bytes_per_day,
            "Most bytes a day that blocks may wear of the drive; 0: no limit (default)", 0)
      ->group(kSettingsGroup);
  add_bytes(app, "--free-floor", settings.free_floor_bytes,
            "Bytes of the file system that are left to others (default: 1/32 of it, at most 1GiB)",
            0)
      ->group(kSettingsGroup);
}

// Microseconds of "90s", "30min", "12h" or "30d", more than none of them.
std::optional<int64_t> parse_time(std::string_view text) {
  static const std::map<std::string_view, int64_t> kUnits = {
      {"s", 1'000'000}, {"min", 60'000'000}, {"h", 3'600'000'000}, {"d", 86'400'000'000}};
  int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  const auto unit = kUnits.find(std::string_view(rest, static_cast<size_t>(end - rest)));
  const bool known = error == std::errc() && unit != kUnits.end() && count > 0;
  if (!known || count > std::numeric_limits<int64_t>::max() / unit->second) return std::nullopt;
  return count * unit->second;
}

template <typename Target>
CLI::Option* add_microseconds(CLI::App& app, const std::string& flag, Target& target,
                              const std::string& help) {
  return app
      .add_option_function<std::string>(
          flag,
          [flag, &target](const std::string& text) {
            const std::optional<int64_t> time_us = parse_time(text);
            if (!time_us) {
              throw CLI::ValidationError(flag, "'" + text +
                                                   "' is no time, expected for example "
                                                   "90s, 30min, 12h or 30d");
            }
            target = *time_us;
          },
          help)
      ->type_name("TIME");
}

}  // namespace

CLI::Validator whole_number(uint64_t least) {
  return {[least](std::string& text) {
            uint64_t number = 0;
            const char* end = text.data() + text.size();
            const auto [rest, error] = std::from_chars(text.data(), end, number);
            if (error == std::errc() && rest == end && number >= least) return std::string();
            return "found '" + text + "', expected a whole number, " + std::to_string(least) +
                   " or more";
          },
          ""};
}

CLI::Option* add_time(CLI::App& app, const std::string& flag, std::optional<int64_t>& target,
                      const std::string& help) {
  return add_microseconds(app, flag, target, help);
}

void add_size(CLI::App& app, const std::string& flag, uint64_t& target, const std::string& help) {
  add_bytes(app, flag, target, help, 1);
}

void add_store(CLI::App& app, std::string& target) {
  app.add_option("--store", target,
                 "Folder of the store (default: $XDG_DATA_HOME/emberkv or ~/.local/share/emberkv)")
      ->type_name("DIR");
}

void add_store(CLI::App& app, std::string& target, EncryptionOptions& encryption) {
  add_store(app, target);
  app.add_flag("--encrypt", encryption.on,
               "The store is encrypted; a new one is made so, and its key file with it");
  app.add_option_function<std::string>(
         "--key-file",
         [&encryption](const std::string& path) {
           encryption.on = true;
           encryption.key_file = path;
         },
         "File of the master key, outside of the store; implies --encrypt "
         "(default: $XDG_CONFIG_HOME/emberkv/master.key or ~/.config/emberkv/master.key)")
      ->type_name("FILE");
}

void add_store_settings(CLI::App& app, StoreSettings& settings) {
  add_limits_of_the_drive(app, settings);
  add_microseconds(app, "--max-age", settings.max_age_us,
                   "Blocks go when nobody has used them for so long (default: no limit)")
      ->group(kSettingsGroup);
  add_bytes(app, "--scrub-bytes-per-second", settings.scrub_bytes_per_second,
            "Pace of the background proof of what is stored; 0: none (default: 8MiB)", 0)
      ->group(kSettingsGroup);
  add_bytes(app, "--access-log", settings.access_log_bytes,
            "Of the store's bytes, for a log of which blocks requests used; 0: none (default), and "
            "an old one is removed",
            0)
      ->group(kSettingsGroup);
  add_bytes(app, "--warm-up", settings.warm_up_bytes_per_second,
            "After opening, pace of reading into RAM what the access log says was used lately; "
            "0: none (default)",
            0)
      ->group(kSettingsGroup);
  app.add_option_function<std::string>(
         "--eviction",
         [&settings](const std::string& name) {
           settings.eviction = name == "auto"       ? EvictionPolicy::kAuto
                               : name == "leaf_lru" ? EvictionPolicy::kLeafLru
                                                    : EvictionPolicy::kS3Fifo;
         },
         "What goes first when a tier is full (default: auto)")
      ->check(CLI::IsMember({"auto", "leaf_lru", "s3_fifo"}))
      ->group(kSettingsGroup);
}

}  // namespace ember
