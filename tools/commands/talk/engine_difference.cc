// Comparing the flags of two engines, each difference by its flag's name.
#include "tools/commands/talk/engine_difference.h"

#include "tools/commands/command_context.h"

#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>

namespace ember {
namespace {

namespace fs = std::filesystem;

std::string real_path(const std::string& folder, const std::string& path) {
  if (path.empty()) return path;
  std::error_code error;
  const fs::path real = fs::canonical(path_from(folder, path), error);
  return error ? path : real.string();
}

std::string weights_flag(WeightForm form) { return form == WeightForm::kInt8 ? "int8" : "stored"; }

std::string dtype_flag(const std::optional<DType>& dtype) {
  return dtype ? std::string(dtype_name(*dtype)) : "bf16";
}

std::string thinking_flag(const std::optional<bool>& thinking) {
  if (!thinking) return "as the template has it";
  return *thinking ? "on" : "off";
}

Status compare(std::string_view what, const std::string& own, const std::string& asked) {
  if (own == asked) return {};
  const auto named = [](const std::string& value) { return value.empty() ? "none" : value; };
  return {ErrorCode::kUnsupported,
          "the store is held by a process (pid " + std::to_string(::getpid()) + ") with " +
              std::string(what) + " " + named(own) + "; this command asks for " + named(asked)};
}

}  // namespace

Status check_same_engine(const EngineFlags& own, const EngineFlags& asked,
                         const std::string& folder) {
  EMBER_TRY(compare("the model", real_path(".", own.model), real_path(folder, asked.model)));
  EMBER_TRY(compare("--config", real_path(".", own.config), real_path(folder, asked.config)));
  EMBER_TRY(compare("--weights", weights_flag(own.weights), weights_flag(asked.weights)));
  EMBER_TRY(compare("--cache-dtype", dtype_flag(own.cache_dtype), dtype_flag(asked.cache_dtype)));
  EMBER_TRY(compare("--attention", attention_mode_name(own.attention),
                    attention_mode_name(asked.attention)));
  EMBER_TRY(compare("--template", own.template_name, asked.template_name));
  EMBER_TRY(compare("thinking", thinking_flag(own.thinking), thinking_flag(asked.thinking)));
  // Who asks for encryption is not to talk into a store that lies in clear.
  if (asked.encryption.on) {
    EMBER_TRY(compare("--encrypt", own.encryption.on ? "on" : "off", "on"));
  }
  if (!asked.trace_file.empty()) {
    return {ErrorCode::kUnsupported,
            "--trace " + asked.trace_file + ": only the process that holds the store writes one"};
  }
  if (asked.context_tokens > 0) {
    EMBER_TRY(compare("--context-tokens", std::to_string(own.context_tokens),
                      std::to_string(asked.context_tokens)));
  }
  return {};
}

}  // namespace ember
