// Reading traces, and numbering their blocks.
#include "store/replay/public_trace.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "base/prng.h"

namespace ember::replay {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kMooncakeTokens = 512;
constexpr uint32_t kShareGptTokens = 16;
// Sessions' ids are grouped by four: a block of 256 tokens; an incomplete last group is dropped.
constexpr size_t kGrouped = 4;
// Of a session's tool and system tokens, the part that all sessions of a model share.
constexpr double kSharedPart = 0.75;

Result<std::string> read_file(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");  // reads plain files as they are
  if (file == nullptr) return Error{ErrorCode::kIo, path + ": cannot be opened"};
  std::string text;
  std::array<char, 1 << 16> part;
  int count = 0;
  while ((count = gzread(file, part.data(), static_cast<unsigned>(part.size()))) > 0) {
    text.append(part.data(), static_cast<size_t>(count));
  }
  gzclose(file);
  if (count < 0) return Error{ErrorCode::kIo, path + ": cannot be read to its end"};
  return text;
}

using Starts = std::unordered_map<std::string, double>;

Result<Starts> read_starts(const TraceFiles& files) {
  if (files.window != "24h" && files.window != "6h") {
    return Error{ErrorCode::kInvalidArgument,
                 "window: found " + files.window + ", expected 24h or 6h"};
  }
  std::ifstream in(files.starts);
  if (!in) return Error{ErrorCode::kIo, files.starts + ": cannot be opened"};
  Starts starts;
  std::string line;
  std::getline(in, line);  // the names of the columns
  while (std::getline(in, line)) {
    std::istringstream cells(line);
    std::string session, day, quarter;
    std::getline(cells, session, ',');
    std::getline(cells, day, ',');
    std::getline(cells, quarter, ',');
    starts[session] = std::strtod((files.window == "24h" ? day : quarter).c_str(), nullptr);
  }
  return starts;
}

class Reader {
 public:
  explicit Reader(const Starts& starts) : starts_(starts) {}

  // Throws the JSON library's exceptions, which name the field.
  void line(const Json& entry) {
    if (entry.contains("hash_ids")) {
      request(entry);
    } else {
      session(entry);
    }
  }
  bool has_sessions() const { return sessions_ > 0; }
  Trace take() {
    trace_.block_tokens = block_tokens();
    for (Request& request : trace_.requests) {
      request.looked_up = request.blocks;
      request.prompt_tokens = request.blocks * trace_.block_tokens;
    }
    finish(trace_, numbering_);
    std::stable_sort(trace_.requests.begin(), trace_.requests.end(),
                     [](const Request& a, const Request& b) { return a.at_s < b.at_s; });
    return std::move(trace_);
  }

 private:
  // ShareGPT's requests name as many ids as blocks of 16 tokens; Mooncake's are of 512.
  uint32_t block_tokens() const {
    if (sessions_ > 0) return static_cast<uint32_t>(kGrouped) * session_tokens_;
    const bool small = most_tokens_per_id_ <= kShareGptTokens;
    return small ? kShareGptTokens : kMooncakeTokens;
  }

  void request(const Json& entry) {
    Request request;
    request.at_s = entry.at("timestamp").get<double>() / 1e3;
    for (const Json& id : entry.at("hash_ids")) {
      request.last = numbering_.number(request.last, id.get<uint64_t>());
      ++request.blocks;
    }
    const double tokens = entry.at("input_length").get<double>();
    const double ids = std::max<double>(1, static_cast<double>(request.blocks));
    most_tokens_per_id_ = std::max(most_tokens_per_id_, tokens / ids);
    trace_.requests.push_back(request);
  }

  static uint64_t shared_ids(const Json& entry, double tokens_of_id) {
    const double tokens =
        entry.at("tool_tokens").get<double>() + entry.at("system_tokens").get<double>();
    return static_cast<uint64_t>(kSharedPart * tokens / tokens_of_id);
  }

  void session(const Json& entry) {
    ++sessions_;
    session_tokens_ = entry.at("block_size").get<uint32_t>();
    const double start = starts_.at(entry.at("id").get<std::string>());
    const uint64_t shared = shared_ids(entry, session_tokens_);
    for (const Json& item : entry.at("requests")) {
      if (!item.contains("requests")) {
        session_request(item, start, shared);
        continue;
      }
      // A sub-agent: ids of the session, tools and system prompt of its own.
      const uint64_t own_shared = shared_ids(item, session_tokens_);
      for (const Json& sub : item.at("requests")) session_request(sub, start, own_shared);
    }
  }

  void session_request(const Json& entry, double start, uint64_t shared) {
    std::vector<uint64_t> ids;
    const Json& runs = entry.at("hash_runs");
    for (size_t i = 0; i + 1 < runs.size(); i += 2) {
      const auto first = runs[i].get<uint64_t>();
      const auto count = runs[i + 1].get<uint64_t>();
      for (uint64_t id = first; id < first + count; ++id) ids.push_back(sessions_ << 32 | id);
    }
    const uint64_t model =
        models_.emplace(entry.at("model").get<std::string>(), models_.size()).first->second;
    for (uint64_t i = 0; i < ids.size() && i < shared; ++i) ids[i] = (model << 32 | i) << 1 | 1;
    for (uint64_t i = shared; i < ids.size(); ++i) ids[i] <<= 1;

    Request request;
    request.at_s = start + entry.at("t").get<double>();
    // Most of it is as in the session's request before: those blocks have their numbers.
    const auto apart = std::mismatch(ids.begin(), ids.end(), last_ids_.begin(), last_ids_.end());
    const size_t alike = static_cast<size_t>(apart.first - ids.begin()) / kGrouped;
    last_chain_.resize(alike);
    for (size_t i = alike * kGrouped; i + kGrouped <= ids.size(); i += kGrouped) {
      uint64_t group = 0;
      for (size_t j = i; j < i + kGrouped; ++j) group = mix64(group + ids[j] + 1);
      const BlockNumber before = last_chain_.empty() ? kNoBlockNumber : last_chain_.back();
      last_chain_.push_back(numbering_.number(before, group));
    }
    last_ids_ = std::move(ids);
    request.blocks = static_cast<uint32_t>(last_chain_.size());
    if (!last_chain_.empty()) request.last = last_chain_.back();
    trace_.requests.push_back(request);
  }

  const Starts& starts_;
  Trace trace_;
  BlockNumbering numbering_;
  std::vector<uint64_t> last_ids_;
  std::vector<BlockNumber> last_chain_;  // of these
  std::unordered_map<std::string, uint64_t> models_;
  uint64_t sessions_ = 0;
  uint32_t session_tokens_ = 0;
  double most_tokens_per_id_ = 0;
};

}  // namespace

Result<Trace> read_trace(const TraceFiles& files) {
  EMBER_ASSIGN(const std::string text, read_file(files.path));
  Starts starts;
  if (!files.starts.empty()) {
    EMBER_ASSIGN(starts, read_starts(files));
  }
  Reader reader(starts);
  size_t line = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    ++line;
    try {
      if (end > at) reader.line(Json::parse(text.data() + at, text.data() + end));
    } catch (const std::exception& error) {  // the JSON library's, or a session without a start
      return Error{ErrorCode::kInvalidArgument,
                   files.path + ":" + std::to_string(line) + ": " + error.what() +
                       (files.starts.empty() ? " (sessions need --starts)" : "")};
    }
    at = end + 1;
  }
  Trace trace = reader.take();
  if (trace.references == 0) {
    return Error{ErrorCode::kInvalidArgument, files.path + ": no request names a block"};
  }
  return trace;
}

}  // namespace ember::replay
