// The bytes of a cost note.
#include "store/cost_note.h"

#include <cmath>
#include <string_view>

#include "base/bytes.h"
#include "store/disk/durable_file.h"
#include "store/disk/private_file.h"

namespace ember {
namespace {

constexpr size_t kMostCostNoteBytes = 4096;

std::string folder_of(const std::string& store) { return store + "/namespaces"; }

std::string path_of(const std::string& store, const NamespaceHash& name) {
  return folder_of(store) + "/" + name.hex() + ".costs";
}

bool plausible(double value) { return std::isfinite(value) && value >= 0; }

bool plausible(const CostNote& note) {
  bool fine = plausible(note.token_bytes) && note.chunk_tokens > 0;
  for (const double value : note.compute) fine = fine && plausible(value);
  for (const auto& tier : note.restore) {
    for (const double value : tier) fine = fine && plausible(value);
  }
  return fine;
}

std::string encode(const CostNote& note) {
  std::string out;
  append_value(out, kCostNoteMagic);
  append_value(out, kCostNoteVersion);
  append_value(out, static_cast<uint16_t>(kTierCount));
  append_value(out, note.chunk_tokens);
  append_value(out, note.context_tokens);
  append_value(out, note.token_bytes);
  append_value(out, note.observations);
  append_value(out, note.unix_us);
  for (const double value : note.compute) append_value(out, value);
  for (const auto& tier : note.restore) {
    for (const double value : tier) append_value(out, value);
  }
  append_value(out, checksum64(as_bytes(out)));
  return out;
}

}  // namespace

std::optional<CostNote> read_cost_note(const std::string& store, const NamespaceHash& name) {
  const Result<std::string> bytes = read_small_file(path_of(store, name), kMostCostNoteBytes);
  if (!bytes.ok() || bytes->size() < sizeof(uint64_t)) return std::nullopt;
  const std::string_view covered =
      std::string_view(*bytes).substr(0, bytes->size() - sizeof(uint64_t));
  if (load_unaligned<uint64_t>(bytes->data() + covered.size()) != checksum64(as_bytes(covered))) {
    return std::nullopt;
  }
  ByteReader reader(covered);
  const bool ours = reader.read<uint32_t>() == kCostNoteMagic &&
                    reader.read<uint16_t>() == kCostNoteVersion &&
                    reader.read<uint16_t>() == kTierCount;
  CostNote note;
  note.chunk_tokens = reader.read<uint64_t>();
  note.context_tokens = reader.read<uint64_t>();
  note.token_bytes = reader.read<double>();
  note.observations = reader.read<uint64_t>();
  note.unix_us = reader.read<int64_t>();
  for (double& value : note.compute) value = reader.read<double>();
  for (auto& tier : note.restore) {
    for (double& value : tier) value = reader.read<double>();
  }
  if (!ours || !reader.finished() || !plausible(note)) return std::nullopt;
  return note;
}

Status write_cost_note(const std::string& store, const NamespaceHash& name, const CostNote& note) {
  EMBER_TRY(make_private_directory(nullptr, folder_of(store)));
  return write_durable_file(nullptr, path_of(store, name), encode(note));
}

}  // namespace ember
