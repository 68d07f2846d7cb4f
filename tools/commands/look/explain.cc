// explain: finds the namespace that knows most of a prompt, and tells where the knowledge ends.
#include "tools/commands/messages.h"
#include "tools/commands/look/explain.h"

#include <algorithm>
#include <cinttypes>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "base/format.h"
#include "engine/model/identity.h"
#include "kernels/device.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/look/block_filter.h"
#include "tools/commands/look/conversations.h"
#include "tools/commands/look/predicted_times.h"
#include "tools/commands/look/prefix_text.h"
#include "tools/commands/look/prompt_match.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

// Tokens before the place where prompt and store differ, and after it, that are shown as text.
constexpr size_t kTokensBefore = 24;
constexpr size_t kTokensAfter = 16;

struct FieldDifference {
  std::string field;
  std::string here;   // in what is explained
  std::string there;  // in the one that knows more
};

// Another namespace or numerics build that knows more of the same tokens.
struct Rival {
  PromptMatch match;
  std::string model;
  std::vector<FieldDifference> differences;
};

struct Explanation {
  PromptTokens prompt;
  PromptMatch match;
  std::string model;
  std::string build;
  std::optional<PredictedTimes> times;
  std::optional<Rival> rival;
  std::optional<std::string> before;  // text around the place
  std::optional<std::string> ours;
  std::optional<std::string> theirs;
};

// "cpu-avx2-1/auto" where this program on this machine could compute so; else its digits.
std::string build_name(uint64_t build) {
  const std::unique_ptr<Device> device = make_cpu_device({.workers = 1});
  for (const AttentionMode mode :
       {AttentionMode::kAuto, AttentionMode::kAbsorb, AttentionMode::kNaive}) {
    const NumericsBuild known = numerics_build(*device, mode);
    if (known.hash == build) return known.text;
  }
  std::string digits;
  print_to(digits, "%016" PRIx64, build);
  return digits;
}

const char* end_name(MatchEnd end) {
  switch (end) {
    case MatchEnd::kWhole:
      return "whole";
    case MatchEnd::kDiffers:
      return "differs";
    case MatchEnd::kUnknown:
      return "unknown";
    case MatchEnd::kDamaged:
      return "damaged";
    case MatchEnd::kNothing:
      return "nothing";
  }
  return "nothing";
}

class Explainer {
 public:
  // `build`: of the engine whose requests are explained.
  Explainer(const ExplainOptions& options, StoreReader& reader, const BlockTree& tree,
            uint64_t build)
      : options_(options), reader_(reader), tree_(tree), build_(build), text_(reader) {}

  Result<Explanation> run() {
    if (!options_.tokenizer.empty()) {
      EMBER_ASSIGN(given_, Tokenizer::load(options_.tokenizer));
    }
    if (options_.conversation.empty()) {
      EMBER_ASSIGN(source_, read_prompt(options_.prompt));
    } else {
      EMBER_TRY(take_conversation());
    }
    std::vector<NamespaceHash> names = candidates();
    if (names.empty()) {
      return Error{ErrorCode::kInvalidArgument,
                   options_.name_space.empty()
                       ? "the store holds no block yet"
                       : options_.name_space + ": no namespace of the store begins so"};
    }
    EMBER_ASSIGN(Explanation best, best_of(names));
    EMBER_TRY(find_rival(best));
    EMBER_ASSIGN(const NamespaceNote note, reader_.name_space(best.match.name_space));
    best.model = note.model;
    best.build = build_name(build_);
    best.times =
        predict_times(reader_.facts().path, best.match, best.prompt.ids.size());
    describe_place(best);
    return best;
  }

 private:
  Status take_conversation() {
    EMBER_ASSIGN(const Conversation talk,
                 load_conversation(reader_.conversations(), options_.conversation));
    conversation_space_ = talk.name_space;
    for (const Turn& turn : talk.turns) {
      conversation_.insert(conversation_.end(), turn.prompt.begin(), turn.prompt.end());
      conversation_.insert(conversation_.end(), turn.answer.begin(), turn.answer.end());
    }
    return {};
  }

  std::vector<NamespaceHash> candidates() const {
    if (!options_.conversation.empty() && options_.name_space.empty()) {
      return {conversation_space_};
    }
    std::vector<NamespaceHash> names;
    for (const NamespaceHash& name : tree_.name_spaces()) {
      if (name.hex().rfind(options_.name_space, 0) == 0) names.push_back(name);
    }
    return names;
  }

  // A namespace's own tokenizer makes its tokens.
  Result<PromptTokens> tokens_for(const NamespaceHash& name_space) {
    if (!options_.conversation.empty()) return PromptTokens{.ids = conversation_, .dropped = {}};
    Tokenizer* tokenizer = given_ ? given_.get() : text_.tokenizer(name_space);
    if (tokenizer == nullptr) {
      return Error{ErrorCode::kInvalidArgument, "the store keeps no tokenizer for namespace " +
                                                    name_space.hex() +
                                                    ": name one with --tokenizer"};
    }
    return tokenize_prompt(*tokenizer, source_, options_.template_name, options_.thinking);
  }

  Result<Explanation> best_of(const std::vector<NamespaceHash>& names) {
    std::optional<Explanation> best;
    std::optional<Error> failure;
    for (const NamespaceHash& name : names) {
      Result<PromptTokens> prompt = tokens_for(name);
      if (!prompt.ok()) {
        failure = prompt.error();
        continue;
      }
      Explanation one;
      one.prompt = std::move(prompt).value();
      EMBER_ASSIGN(one.match, match(one.prompt.ids, name, build_));
      if (one.prompt.ids.empty()) {
        return Error{ErrorCode::kInvalidArgument,
                     "the prompt has no tokens, expected at least one"};
      }
      if (!best || one.match.tokens > best->match.tokens) best = std::move(one);
    }
    if (!best) return *failure;
    return std::move(*best);
  }

  Result<PromptMatch> match(TokenSpan prompt, const NamespaceHash& name, uint64_t build) {
    return match_prompt(reader_, tree_, prompt,
                        {.name_space = name, .scope = options_.scope, .build = build});
  }

  // Blocks of another namespace or numerics build are of no use, however well their tokens agree:
  // which field of the identity stands between is what one wants to know.
  Status find_rival(Explanation& best) {
    for (const NamespaceHash& name : tree_.name_spaces()) {
      for (const uint64_t build : tree_.builds()) {
        if (name == best.match.name_space && build == build_) continue;
        EMBER_ASSIGN(PromptMatch other, match(best.prompt.ids, name, build));
        const uint64_t most = best.rival ? best.rival->match.tokens : best.match.tokens;
        if (other.tokens > most) best.rival = Rival{std::move(other), {}, {}};
      }
    }
    if (!best.rival) return {};
    if (*best.rival->match.build != build_) {
      best.rival->differences.push_back(
          {"numerics_build", build_name(build_), build_name(*best.rival->match.build)});
    }
    EMBER_ASSIGN(const NamespaceNote here, reader_.name_space(best.match.name_space));
    EMBER_ASSIGN(const NamespaceNote there, reader_.name_space(best.rival->match.name_space));
    best.rival->model = there.model;
    for (const auto& [field, value] : there.fields) {
      const auto same = std::find_if(here.fields.begin(), here.fields.end(),
                                     [&field](const auto& one) { return one.first == field; });
      const std::string ours = same == here.fields.end() ? "" : same->second;
      if (ours != value) best.rival->differences.push_back({field, ours, value});
    }
    return {};
  }

  void describe_place(Explanation& one) {
    const PromptMatch& match = one.match;
    const TokenSpan prompt(one.prompt.ids);
    const size_t at = std::min<size_t>(match.tokens, prompt.size());
    const size_t before = std::min(at, kTokensBefore);
    one.before = text_.of(match.name_space, prompt.subspan(at - before, before));
    one.ours =
        text_.of(match.name_space, prompt.subspan(at, std::min(prompt.size() - at, kTokensAfter)));
    if (match.end != MatchEnd::kDiffers) return;
    const TokenSpan other(match.other_tokens);
    one.theirs = text_.of(match.name_space, other.first(std::min(other.size(), kTokensAfter)));
  }

  const ExplainOptions& options_;
  StoreReader& reader_;
  const BlockTree& tree_;
  const uint64_t build_;
  PrefixText text_;
  std::unique_ptr<Tokenizer> given_;
  PromptSource source_;
  std::vector<TokenId> conversation_;
  NamespaceHash conversation_space_;
};

Json rival_json(const Rival& rival) {
  Json json = {{"namespace", rival.match.name_space.hex()},
               {"model", rival.model},
               {"numerics_build", build_name(*rival.match.build)},
               {"tokens", rival.match.tokens},
               {"differs", Json::array()}};
  for (const FieldDifference& one : rival.differences) {
    json["differs"].push_back({{"field", one.field}, {"here", one.here}, {"there", one.there}});
  }
  return json;
}

Json times_json(const PredictedTimes& times) {
  return {{"restored_tokens", times.restored_tokens},
          {"skipped_tokens", times.skipped_tokens},
          {"restore_ms", times.restore_ms},
          {"compute_ms", times.compute_ms},
          {"without_cache_ms", times.without_cache_ms},
          {"context_tokens", times.context_tokens},
          {"learned_from_steps", times.observations},
          {"learned_unix_us", times.unix_us}};
}

void print_json(const Explanation& one, std::ostream& out) {
  const PromptMatch& match = one.match;
  const uint64_t prompt = one.prompt.ids.size();
  Json json = {{"prompt_tokens", prompt},      {"namespace", match.name_space.hex()},
               {"model", one.model},           {"numerics_build", one.build},
               {"block_tokens", match.block_tokens},
               {"hit_tokens", match.tokens},   {"computed_tokens", prompt - match.tokens},
               {"blocks", match.nodes.size()}, {"runs", Json::array()},
               {"end", end_name(match.end)}};
  for (const TierRun& run : match.runs) {
    json["runs"].push_back({{"tier", tier_name(run.tier)}, {"tokens", run.tokens}});
  }
  json["predicted"] = one.times ? times_json(*one.times) : Json();
  const auto add_text = [&json](const char* name, const std::optional<std::string>& text) {
    if (text) json[name] = valid_utf8(*text);
  };
  add_text("text_before", one.before);
  add_text("prompt_text", one.ours);
  if (match.end == MatchEnd::kDiffers || match.end == MatchEnd::kDamaged) {
    json["stored_block"] = match.other.hex();
  }
  add_text("stored_text", one.theirs);
  if (one.rival) json["other_namespace"] = rival_json(*one.rival);
  json["dropped"] = Json::array();
  for (const DroppedText& part : one.prompt.dropped) {
    json["dropped"].push_back({{"message", part.message},
                               {"field", part.field},
                               {"begin", part.begin},
                               {"end", part.end},
                               {"why", part.why}});
  }
  out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

std::string reason(const Explanation& one) {
  const PromptMatch& match = one.match;
  const std::string at = grouped(match.tokens);
  switch (match.end) {
    case MatchEnd::kWhole:
      return "all of it is known; the last token always runs";
    case MatchEnd::kDiffers:
      return "token " + at + " differs from what the store knows (block " +
             match.other.hex().substr(0, 16) + ")";
    case MatchEnd::kUnknown:
      return "nothing in the store goes on after token " + at;
    case MatchEnd::kDamaged:
      return "block " + match.other.hex().substr(0, 16) +
             " was proven damaged; recomputing heals it";
    case MatchEnd::kNothing:
      return "the store has no block of this namespace, scope and numerics build";
  }
  return "";
}

void print_place(const Explanation& one, CommandIo& io) {
  if (one.match.end != MatchEnd::kDiffers && one.match.end != MatchEnd::kUnknown) return;
  const size_t room = io.width > 40 ? io.width - 17 : 23;
  if (one.before && !one.before->empty()) {
    io.out << "  after          " << end_of_line(*one.before, room) << '\n';
  }
  if (one.ours) io.out << "  the prompt has " << one_line(*one.ours, room) << '\n';
  if (one.theirs) io.out << "  the store has  " << one_line(*one.theirs, room) << '\n';
}

// A prompt takes room for at least one token of an answer beside it.
bool is_too_long(const Explanation& one) {
  const uint64_t context = one.times ? one.times->context_tokens : 0;
  return context > 0 && one.prompt.ids.size() >= context;
}

void print_times(const PredictedTimes& times, std::ostream& out) {
  out << "predicted        " << duration_text(times.restore_ms) << " to restore, "
      << duration_text(times.compute_ms) << " to compute; without the cache "
      << duration_text(times.without_cache_ms) << '\n';
  if (times.skipped_tokens == 0) return;
  out << "                 " << grouped(times.skipped_tokens)
      << " of the known tokens would be computed all the same: that is quicker\n";
}

void print_text(const Explanation& one, CommandIo& io) {
  const PromptMatch& match = one.match;
  const uint64_t prompt = one.prompt.ids.size();
  io.out << "prompt           " << counted(prompt, "token");
  if (is_too_long(one)) {
    io.out << ": too long; the context holds " << grouped(one.times->context_tokens)
           << ", answer included";
  }
  io.out << "\nnamespace        " << match.name_space.hex()
         << (one.model.empty() ? "" : " (" + one_line(one.model, 64) + ")") << '\n'
         << "numerics         " << one.build << '\n'
         << "would hit        " << counted(match.tokens, "token") << ", "
         << percent_text(static_cast<double>(match.tokens), static_cast<double>(prompt)) << ", of "
         << counted(match.nodes.size(), "block") << "\n";
  for (const TierRun& run : match.runs) {
    io.out << "                 " << grouped(run.tokens) << " from " << tier_name(run.tier) << '\n';
  }
  io.out << "would compute    " << counted(prompt - match.tokens, "token") << "\n"
         << "because          " << reason(one) << '\n';
  print_place(one, io);
  if (one.times) print_times(*one.times, io.out);
  if (one.rival) {
    const bool same = one.rival->match.name_space == match.name_space;
    io.out << "\nnamespace " << one.rival->match.name_space.hex()
           << (one.rival->model.empty() ? "" : " (" + one_line(one.rival->model, 64) + ")")
           << " knows " << grouped(one.rival->match.tokens) << " of these tokens, but "
           << (same ? "they were computed in another way:" : "it is another because of") << '\n';
    for (const FieldDifference& field : one.rival->differences) {
      io.out << "  " << one_line(field.field, 64) << ": here " << one_line(field.here, 200)
             << ", there " << one_line(field.there, 200) << '\n';
    }
    if (one.rival->differences.empty()) io.out << "  a field that was not written down\n";
  }
  for (const DroppedText& part : one.prompt.dropped) {
    io.out << "\nmessage " << part.message << ": " << part.field << " [" << part.begin << ", "
           << part.end << ") is not in the prompt: " << part.why << '\n';
  }
  io.out << std::flush;
}

}  // namespace

namespace {

// In the holder a name such as /dev/stdin would be the holder's own, and a pipe could hold it up.
Status check_files(const ExplainOptions& options, const CommandContext& context) {
  if (context.folder.empty()) return {};
  for (const std::optional<std::string>& file :
       {options.prompt.prompt_file, options.prompt.messages_file, options.prompt.system.file}) {
    std::error_code error;
    if (!file || std::filesystem::is_regular_file(*file, error)) continue;
    return {ErrorCode::kInvalidArgument,
            *file + ": is no file; beside a process that holds the store only files are read"};
  }
  return {};
}

// What is explained is the next request: of the process that holds the store, else of `generate` on
// this machine.
Result<uint64_t> build_of_requests(const ExplainOptions& options, StoreReader& reader,
                                   const CommandContext& context) {
  if (reader.facts().live) {
    EMBER_ASSIGN(const LiveCache live, context.open_live(options.store));
    return live.numerics_build;
  }
  return numerics_build(*make_cpu_device({.workers = 1}), options.attention).hash;
}

}  // namespace

Result<int> run_explain(const ExplainOptions& options, CommandContext& context) {
  BlockFilter digits;
  digits.name_space = options.name_space;
  EMBER_TRY(check_filter(digits));
  EMBER_ASSIGN(const std::shared_ptr<StoreReader> reader, context.open_reader(options.store));
  EMBER_TRY(check_files(options, context));
  EMBER_ASSIGN(const BlockTree tree, read_tree(*reader, context.io));
  EMBER_ASSIGN(const uint64_t build, build_of_requests(options, *reader, context));
  EMBER_ASSIGN(const Explanation explanation, Explainer(options, *reader, tree, build).run());
  if (options.json) {
    print_json(explanation, context.io.out);
  } else {
    print_text(explanation, context.io);
  }
  if (tree.walked().unreadable > 0) {
    context.io.err << "emberkv: warning: " << counted(tree.walked().unreadable, "record")
                   << " of the store cannot be read; " << kRepairIsNext << std::endl;
  }
  return kExitOk;
}

}  // namespace ember
