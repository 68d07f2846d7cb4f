// Transfer format: the manifest and the end, as JSON that is believed in nothing.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/bytes.h"
#include "store/transfer/transfer_format.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json counts_json(const TransferCounts& counts) {
  return {{"blocks", counts.blocks},
          {"tails", counts.tails},
          {"conversations", counts.conversations}};
}

Json layout_json(const KvLayout& layout) {
  const Stream& stream = layout.stream();
  return {{"layers", layout.layers()},
          {"block_tokens", layout.block_tokens()},
          {"stream",
           {{"kind", static_cast<uint64_t>(stream.kind)},
            {"lifetime", static_cast<uint64_t>(stream.lifetime)},
            {"dtype", static_cast<uint64_t>(stream.dtype)},
            {"scale_rule", static_cast<uint64_t>(stream.scale_rule)},
            {"tokens_per_row", stream.tokens_per_row},
            {"row_values", stream.row_values}}}};
}

Json hash_json(const BlockHash& hash) {
  return hash == BlockHash{} ? Json(nullptr) : Json(hash.hex());
}

// How deep lists and objects lie in each other, of a text that need not be JSON.
size_t depth_of(std::string_view text) {
  size_t depth = 0;
  size_t most = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '{' || c == '[')) {
      most = std::max(most, ++depth);
    } else if (!quoted && (c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return most;
}

// Reads fields; the first that is not as it must be is remembered, and all later ones are empty.
class Fields {
 public:
  explicit Fields(std::string file) : file_(std::move(file)) {}

  Result<Json> parse(std::string_view text) {
    if (text.size() > kMostTransferJsonBytes || depth_of(text) > kMostTransferJsonDepth) {
      return Error{ErrorCode::kCorruption, file_ + ": is too long or too deep"};
    }
    Json json = Json::parse(text.begin(), text.end(), nullptr, false);
    if (json.is_discarded() || !json.is_object()) {
      return Error{ErrorCode::kCorruption, file_ + ": is no JSON object"};
    }
    return json;
  }

  uint64_t number(const Json& object, const char* name, uint64_t most) {
    const Json* found = field(object, name);
    if (found != nullptr && found->is_number_unsigned() && found->get<uint64_t>() <= most) {
      return found->get<uint64_t>();
    }
    wrong(name);
    return 0;
  }
  std::string text(const Json& object, const char* name) {
    const Json* found = field(object, name);
    return found == nullptr ? std::string() : text(*found, name, kMostTransferTextBytes);
  }
  std::string text(const Json& value, const char* name, size_t most) {
    if (value.is_string() && value.get_ref<const std::string&>().size() <= most) {
      return value.get<std::string>();
    }
    wrong(name);
    return {};
  }
  // Zeros where it may be null, and is.
  BlockHash hash(const Json& object, const char* name, bool optional) {
    const Json* found = field(object, name);
    if (found == nullptr || (optional && found->is_null())) return {};
    const std::optional<std::string> bytes = from_hex(text(*found, name, 32));
    BlockHash hash;
    if (!bytes || bytes->size() != hash.bytes.size()) {
      wrong(name);
      return {};
    }
    std::copy(bytes->begin(), bytes->end(), hash.bytes.begin());
    if (hash == BlockHash{}) wrong(name);
    return hash;
  }
  const Json& object(const Json& parent, const char* name) {
    const Json* found = field(parent, name);
    if (found != nullptr && found->is_object()) return *found;
    wrong(name);
    return empty_object_;
  }
  const Json& list(const Json& parent, const char* name, size_t most) {
    const Json* found = field(parent, name);
    if (found != nullptr && found->is_array() && found->size() <= most) return *found;
    wrong(name);
    return empty_list_;
  }
  const Json* field(const Json& object, const char* name) {
    if (object.is_object()) {
      const auto found = object.find(name);
      if (found != object.end()) return &*found;
    }
    wrong(name);
    return nullptr;
  }
  void wrong(const char* name) {
    if (status_.ok()) {
      status_ = {ErrorCode::kCorruption, file_ + ": " + name + " is missing or not as it must be"};
    }
  }
  const Status& status() const { return status_; }

 private:
  const std::string file_;
  Status status_;
  const Json empty_object_ = Json::object();
  const Json empty_list_ = Json::array();
};

TransferCounts read_counts(Fields& fields, const Json& json) {
  TransferCounts counts;
  counts.blocks = fields.number(json, "blocks", kMostTransferBlocks);
  counts.tails = fields.number(json, "tails", kMostTransferBlocks);
  counts.conversations = fields.number(json, "conversations", kMostTransferBlocks);
  return counts;
}

std::optional<KvLayout> read_layout(Fields& fields, const Json& json) {
  const Json& given = fields.object(json, "stream");
  Stream stream;
  stream.kind = static_cast<StreamKind>(fields.number(given, "kind", 2));
  stream.lifetime = static_cast<StreamLifetime>(fields.number(given, "lifetime", 2));
  stream.dtype = static_cast<DType>(fields.number(given, "dtype", UINT8_MAX));
  stream.scale_rule = static_cast<ScaleRule>(fields.number(given, "scale_rule", 1));
  stream.tokens_per_row = static_cast<uint16_t>(fields.number(given, "tokens_per_row", 1));
  stream.row_values = static_cast<uint32_t>(fields.number(given, "row_values", 1u << 20));
  const auto layers = static_cast<uint32_t>(fields.number(json, "layers", kMaxGroups));
  const auto tokens = static_cast<uint32_t>(fields.number(json, "block_tokens", kMaxBlockTokens));
  const uint64_t row_bytes = uint64_t{stream.row_values} * dtype_bytes(stream.dtype);
  // No product of these passes 64 bits.
  const uint64_t bytes = row_bytes * layers * tokens;
  const bool known = stream.kind == StreamKind::kMlaRow || stream.kind == StreamKind::kMlaFp8Row;
  const bool lives = stream.lifetime == StreamLifetime::kHistory ||
                     stream.lifetime == StreamLifetime::kState;
  if (bytes == 0 || bytes > kMostTransferBlockBytes || !known || !lives ||
      stream.tokens_per_row != 1) {
    fields.wrong("layout");
    return std::nullopt;
  }
  return KvLayout(layers, tokens, stream);
}

TransferNamespace read_namespace(Fields& fields, const Json& json) {
  TransferNamespace one;
  one.name = fields.hash(json, "namespace", false);
  one.model = fields.text(json, "model");
  for (const Json& pair : fields.list(json, "fields", kMostTransferFields)) {
    if (!pair.is_array() || pair.size() != 2) {
      fields.wrong("fields");
      break;
    }
    std::string name = fields.text(pair[0], "fields", kMostTransferTextBytes);
    one.fields.emplace_back(std::move(name),
                            fields.text(pair[1], "fields", kMostTransferTextBytes));
  }
  const Json* layout = fields.field(json, "layout");
  if (layout != nullptr && !layout->is_null()) one.layout = read_layout(fields, *layout);
  one.tokenizer = fields.hash(json, "tokenizer", true);
  return one;
}

TransferTokenizer read_tokenizer(Fields& fields, const Json& json) {
  TransferTokenizer one;
  one.digest = fields.hash(json, "digest", false);
  for (const Json& file : fields.list(json, "files", 2)) {
    TransferFile row;
    row.name = fields.text(file, "name");
    row.bytes = fields.number(file, "bytes", kMostTokenizerFileBytes);
    const bool again = !one.files.empty() && one.files[0].name == row.name;
    if (!is_tokenizer_file(row.name) || again) fields.wrong("files");
    one.files.push_back(std::move(row));
  }
  if (one.files.empty()) fields.wrong("files");
  return one;
}

}  // namespace

std::string encode_manifest(const TransferManifest& manifest) {
  Json json = {{"format", kTransferFormat},
               {"version", kTransferVersion},
               {"program", manifest.program},
               {"made_unix_us", static_cast<uint64_t>(std::max<int64_t>(manifest.made_unix_us, 0))},
               {"planned", counts_json(manifest.planned)},
               {"scopes", manifest.scopes},
               {"namespaces", Json::array()},
               {"tokenizers", Json::array()}};
  for (const TransferNamespace& one : manifest.name_spaces) {
    Json fields = Json::array();
    for (const auto& [name, value] : one.fields) fields.push_back(Json::array({name, value}));
    json["namespaces"].push_back(
        {{"namespace", one.name.hex()},
         {"model", one.model.substr(0, kMostTransferTextBytes)},
         {"fields", std::move(fields)},
         {"layout", one.layout ? layout_json(*one.layout) : Json(nullptr)},
         {"tokenizer", hash_json(one.tokenizer)}});
  }
  for (const TransferTokenizer& one : manifest.tokenizers) {
    Json files = Json::array();
    for (const TransferFile& file : one.files) {
      files.push_back({{"name", file.name}, {"bytes", file.bytes}});
    }
    json["tokenizers"].push_back({{"digest", one.digest.hex()}, {"files", std::move(files)}});
  }
  return text_of(json);
}

Result<TransferManifest> decode_manifest(std::string_view text) {
  Fields fields{std::string(kManifestName)};
  EMBER_ASSIGN(const Json json, fields.parse(text));
  TransferManifest manifest;
  if (fields.text(json, "format") != kTransferFormat) fields.wrong("format");
  const uint64_t version = fields.number(json, "version", UINT32_MAX);
  EMBER_TRY(fields.status());
  if (version != kTransferVersion) {
    return Error{ErrorCode::kUnsupported, std::string(kManifestName) + ": version " +
                                              std::to_string(version) + ", this program reads " +
                                              std::to_string(kTransferVersion)};
  }
  manifest.program = fields.text(json, "program");
  manifest.made_unix_us =
      static_cast<int64_t>(fields.number(json, "made_unix_us", uint64_t{INT64_MAX}));
  manifest.planned = read_counts(fields, fields.object(json, "planned"));
  for (const Json& scope : fields.list(json, "scopes", kMostTransferScopes)) {
    manifest.scopes.push_back(fields.text(scope, "scopes", kMostTransferTextBytes));
  }
  for (const Json& one : fields.list(json, "namespaces", kMostTransferNamespaces)) {
    manifest.name_spaces.push_back(read_namespace(fields, one));
  }
  for (const Json& one : fields.list(json, "tokenizers", kMostTransferNamespaces)) {
    manifest.tokenizers.push_back(read_tokenizer(fields, one));
  }
  EMBER_TRY(fields.status());
  return manifest;
}

std::string encode_end(const TransferEnd& end) {
  return text_of({{"counts", counts_json(end.counts)},
                  {"left_out", end.left_out},
                  {"digest", end.digest.hex()}});
}

Result<TransferEnd> decode_end(std::string_view text) {
  Fields fields{std::string(kEndName)};
  EMBER_ASSIGN(const Json json, fields.parse(text));
  TransferEnd end;
  end.counts = read_counts(fields, fields.object(json, "counts"));
  end.left_out = fields.number(json, "left_out", kMostTransferBlocks);
  end.digest = fields.hash(json, "digest", false);
  EMBER_TRY(fields.status());
  return end;
}

}  // namespace ember
