// Store flags: where a store lies, how large it may be, and what else an operator may set of it.
//
// Journey    command line -> [store_flags] -> options of the commands
// Invariant  a flag that is not given leaves its target as it is: the default
// Threads    main
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "store/encryption.h"
#include "store/store_settings.h"

namespace ember {

// For numbers: CLI11 takes "-1" for a very large one.
CLI::Validator whole_number(uint64_t least);

// A size such as 4096, 512MiB or 20GiB, 1 or more.
void add_size(CLI::App& app, const std::string& flag, uint64_t& target, const std::string& help);

// A time such as 90s, 30min, 12h or 30d, in microseconds.
CLI::Option* add_time(CLI::App& app, const std::string& flag, std::optional<int64_t>& target,
                      const std::string& help);

// --store.
void add_store(CLI::App& app, std::string& target);
// --store, --encrypt, --key-file.
void add_store(CLI::App& app, std::string& target, EncryptionOptions& encryption);

// The group "Store" of the commands that write one.
void add_store_settings(CLI::App& app, StoreSettings& settings);

}  // namespace ember
