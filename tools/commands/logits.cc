// Logits command: prefill in steps, every row with its logits, streamed to the file.
#include "tools/commands/logits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <limits>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/model_config.h"
#include "engine/model/forward.h"
#include "engine/model/identity.h"
#include "engine/model/weights.h"
#include "kernels/device.h"
#include "prefix_index/token.h"
#include "tools/commands/npy.h"

namespace ember {
namespace {

constexpr size_t kMaxStepRows = 256;
constexpr size_t kMaxStepLogitBytes = size_t{64} << 20;
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

Status wait_for(Device& device, Ticket ticket) {
  std::array<Completion, 4> done;
  while (true) {
    const size_t count = device.wait_any(std::numeric_limits<int64_t>::max(), done);
    for (size_t i = 0; i < count; ++i) {
      if (done[i].ticket == ticket) return done[i].status;
    }
  }
}

// A pool of just the blocks that the ids need: block i of the sequence lies in slot i.
struct LocalPool {
  Buffer memory;
  std::vector<LatentCacheView> views;
  std::vector<int32_t> table;
};

Result<LocalPool> make_pool(const ModelConfig& config, DType precision, size_t tokens,
                            Device& device) {
  const KvLayout layout = model_kv_layout(config, precision, kDefaultBlockTokens, 0);
  const size_t blocks = (tokens + layout.block_tokens() - 1) / layout.block_tokens();
  LocalPool pool;
  EMBER_ASSIGN(pool.memory, device.allocate(blocks * layout.block_bytes()));
  for (uint32_t layer = 0; layer < config.layers; ++layer) {
    LatentCacheView view;
    view.pool = pool.memory.bytes();
    view.slot_bytes = layout.block_bytes();
    view.layer_offset = layout.layer_offset(layer);
    view.row_bytes = layout.row_bytes();
    view.dtype = precision;
    view.block_tokens = layout.block_tokens();
    pool.views.push_back(view);
  }
  for (size_t i = 0; i < blocks; ++i) pool.table.push_back(static_cast<int32_t>(i));
  return pool;
}

ForwardOptions step_options(const LogitsOptions& options, const ModelConfig& config,
                            const LocalPool& pool, size_t tokens) {
  const size_t row_bytes = config.vocab_size * sizeof(float);
  const size_t rows = std::clamp<size_t>(kMaxStepLogitBytes / row_bytes, 1, kMaxStepRows);
  ForwardOptions forward;
  forward.precision = options.precision;
  forward.attention = options.attention;
  forward.max_rows = std::min(rows, tokens);
  forward.max_sequences = 1;
  forward.max_blocks = pool.table.size();
  forward.max_logit_rows = forward.max_rows;
  forward.max_positions = tokens;
  return forward;
}

}  // namespace

Status run_logits(const LogitsOptions& options) {
  EMBER_ASSIGN(const ModelConfig config, load_model_config(options.model));
  EMBER_ASSIGN(const std::vector<int32_t> ids, read_ids(options.ids_file, config));
  EMBER_ASSIGN(std::shared_ptr<Checkpoint> checkpoint, Checkpoint::open(options.model));
  CpuDeviceOptions device_options;
  device_options.workers = options.workers;
  const std::unique_ptr<Device> device = make_cpu_device(device_options);
  EMBER_ASSIGN(const std::unique_ptr<ModelWeights> weights,
               load_weights(std::move(checkpoint), config, options.precision, *device, {}));
  EMBER_ASSIGN(const LocalPool pool, make_pool(config, options.precision, ids.size(), *device));
  const ForwardOptions forward_options = step_options(options, config, pool, ids.size());
  EMBER_ASSIGN(const std::unique_ptr<Forward> forward,
               Forward::create(*weights, forward_options, pool.views, config.vocab_size, *device));
  EMBER_ASSIGN(const std::unique_ptr<NpyWriter> out,
               NpyWriter::create(options.out_path, ids.size(), config.vocab_size));
  for (size_t first = 0; first < ids.size(); first += forward_options.max_rows) {
    const size_t rows = std::min(forward_options.max_rows, ids.size() - first);
    StepSequence sequence;
    sequence.tokens = std::span<const int32_t>(ids).subspan(first, rows);
    sequence.first_position = static_cast<int32_t>(first);
    sequence.block_table = pool.table;
    sequence.logit_rows = rows;
    const Program& program = forward->build({&sequence, 1});
    EMBER_TRY(wait_for(*device, device->submit(program)));
    EMBER_TRY(out->append(forward->logits()));
  }
  return out->finish();
}

}  // namespace ember
