// Chat template: the known templates. Each is written out by hand; a digest tells whose text it is.
#include "engine/text/chat_template.h"

#include <xxhash.h>

#include <cstdio>
#include <utility>

namespace ember {
namespace {

// DeepSeek-V3's, for text turns.
class DeepSeekV3Template final : public ChatTemplate {
 public:
  static constexpr std::string_view kName = "deepseek-v3";
  // XXH3-128 of the chat_template in DeepSeek-V3's tokenizer_config.json.
  static constexpr std::string_view kDigest = "4539344e06ec0b776878d9ac13b3ef51";

  explicit DeepSeekV3Template(std::string bos) : bos_(std::move(bos)) {}

  std::string_view name() const override { return kName; }

  Result<std::string> render(const std::vector<Message>& messages,
                             bool generation_prompt) const override {
    std::string system;
    std::string turns;
    bool first_system = true;
    for (size_t i = 0; i < messages.size(); ++i) {
      const auto& [role, content] = messages[i];
      if (role == "system") {  // all of them go to the front, wherever they stand
        if (!first_system) system += "\n\n";
        system += content;
        first_system = false;
      } else if (role == "user") {
        turns.append(kUser).append(content);
      } else if (role == "assistant") {
        turns.append(kAssistant).append(content).append(kEnd);
      } else {
        return Error{ErrorCode::kInvalidArgument, "messages[" + std::to_string(i) +
                                                      "]: the template " + std::string(kName) +
                                                      " cannot render the role \"" + role +
                                                      "\" (it knows system, user and assistant)"};
      }
    }
    std::string text = opening(system) + turns;
    if (generation_prompt) text += kAssistant;
    return text;
  }

  std::string opening(std::string_view system) const override { return bos_ + std::string(system); }
  std::string user_turn(std::string_view user) const override {
    return std::string(kUser).append(user).append(kAssistant);
  }
  std::string answer_end() const override { return std::string(kEnd); }

 private:
  static constexpr std::string_view kUser = "<｜User｜>";
  static constexpr std::string_view kAssistant = "<｜Assistant｜>";
  static constexpr std::string_view kEnd = "<｜end▁of▁sentence｜>";

  std::string bos_;
};

std::string digest_of(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  char hex[33];
  std::snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return hex;
}

}  // namespace

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::choose(const Tokenizer& tokenizer,
                                                           std::string_view name) {
  const std::string known = "known: " + std::string(DeepSeekV3Template::kName);
  if (!name.empty() && name != DeepSeekV3Template::kName) {
    return Error{ErrorCode::kUnsupported,
                 "there is no chat template \"" + std::string(name) + "\" (" + known + ")"};
  }
  const std::string& text = tokenizer.chat_template();
  if (name.empty() && text.empty()) {
    return Error{ErrorCode::kUnsupported,
                 "tokenizer_config.json has no chat_template; name one (" + known + ")"};
  }
  if (const std::string digest = digest_of(text);
      name.empty() && digest != DeepSeekV3Template::kDigest) {
    return Error{ErrorCode::kUnsupported,
                 "tokenizer_config.json: the chat_template (XXH3-128 " + digest +
                     ") equals none that is known; name the one that it means (" + known + ")"};
  }
  return std::unique_ptr<ChatTemplate>(std::make_unique<DeepSeekV3Template>(tokenizer.bos_text()));
}

}  // namespace ember
