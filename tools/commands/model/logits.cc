// Logits command: prefill in steps, every row with its logits, streamed to the file.
#include "tools/commands/model/logits.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <memory>
#include <vector>

#include "tools/commands/model/npy.h"

namespace ember {
namespace {

constexpr size_t kShownWordBytes = 24;
constexpr std::string_view kBlanks = " \t\r\v\f";

Result<int32_t> parse_id(std::string_view word, const std::string& where, uint32_t vocab) {
  int64_t id = 0;
  const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), id);
  if (failed == std::errc() && end == word.data() + word.size() && id >= 0 && id < int64_t{vocab}) {
    return static_cast<int32_t>(id);
  }
  return Error{ErrorCode::kInvalidArgument,
               where + ": found \"" + std::string(word.substr(0, kShownWordBytes)) +
                   "\", expected a token id from 0 to " + std::to_string(vocab - 1)};
}

Status parse_line(std::string_view line, const std::string& where, uint32_t vocab,
                  std::vector<int32_t>& ids) {
  size_t word_number = 0;
  size_t at = 0;
  while ((at = line.find_first_not_of(kBlanks, at)) != std::string_view::npos) {
    const size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    const std::string place = where + ", word " + std::to_string(++word_number);
    EMBER_ASSIGN(const int32_t id, parse_id(line.substr(at, end - at), place, vocab));
    ids.push_back(id);
    at = end;
  }
  return {};
}

Result<std::vector<int32_t>> read_ids(const std::string& path, const ModelConfig& config) {
  std::ifstream file(path);
  if (!file)
    return Error{ErrorCode::kIo, path + ": cannot be opened, expected a file of token ids"};
  std::vector<int32_t> ids;
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    EMBER_TRY(parse_line(line, path + ": line " + std::to_string(number), config.vocab_size, ids));
  }
  if (file.bad()) return Error{ErrorCode::kIo, path + ": reading failed"};
  if (ids.empty()) {
    return Error{ErrorCode::kInvalidArgument, path + ": holds no token ids, expected at least one"};
  }
  if (ids.size() > config.max_positions) {
    return Error{ErrorCode::kInvalidArgument, path + ": holds " + std::to_string(ids.size()) +
                                                  " token ids, expected at most " +
                                                  std::to_string(config.max_positions) +
                                                  ", the model's max_position_embeddings"};
  }
  return ids;
}

}  // namespace

Status run_logits(const LogitsOptions& options) {
  EMBER_ASSIGN(const std::unique_ptr<LocalModel> model, LocalModel::open(options.model));
  EMBER_ASSIGN(const std::vector<int32_t> ids, read_ids(options.ids_file, model->config()));
  EMBER_ASSIGN(const std::unique_ptr<NpyWriter> out,
               NpyWriter::create(options.out_path, ids.size(), model->config().vocab_size));
  EMBER_TRY(model->run(
      ids, [&](size_t, std::span<const float> logits) { return out->append(logits); }));
  return out->finish();
}

}  // namespace ember
