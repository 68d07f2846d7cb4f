// Notes of namespaces and the tokenizers beside them: small files, each written once.
#include "store/namespace_book.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/bytes.h"
#include "base/framed_text.h"
#include "store/disk/durable_file.h"
#include "store/disk/private_file.h"
#include "store/store_reader.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFieldBytes = 2048;
constexpr size_t kMostFields = 64;
constexpr size_t kHeadBytes = 4 + 2 + 2 + 16;
constexpr size_t kChecksumBytes = 8;
// With all fields as long as they may be.
constexpr size_t kMostNoteBytes =
    kHeadBytes + (1 + 2 * kMostFields) * (4 + kMostFieldBytes) + kChecksumBytes;

std::string folder_of(const std::string& store) { return store + "/namespaces"; }
std::string note_path(const std::string& store, const NamespaceHash& name) {
  return folder_of(store) + "/" + name.hex();
}
std::string tokenizer_path(const std::string& store, const BlockHash& digest) {
  return folder_of(store) + "/" + digest.hex();
}

std::string encode(const NamespaceEntry& entry) {
  std::string out;
  append_value(out, kNamespaceMagic);
  append_value(out, kNamespaceVersion);
  append_value(out, static_cast<uint16_t>(entry.fields.size()));
  out += entry.tokenizer_digest.view();
  append_text(out, entry.model.substr(0, kMostFieldBytes));
  for (const auto& [name, value] : entry.fields) {
    append_text(out, name.substr(0, kMostFieldBytes));
    append_text(out, value.substr(0, kMostFieldBytes));
  }
  append_value(out, checksum64(as_bytes(out)));
  return out;
}

// Under another name first: a folder that has its name is whole.
Status write_tokenizer(const std::string& folder, const NamespaceEntry::Files& files) {
  const std::string unfinished = folder + ".unfinished";
  std::error_code error;
  fs::remove_all(unfinished, error);
  EMBER_TRY(make_private_directory(nullptr, unfinished));
  for (const auto& [name, bytes] : files) {
    EMBER_TRY(write_durable_file(nullptr, unfinished + "/" + name, bytes));
  }
  fs::rename(unfinished, folder, error);
  if (error) return {ErrorCode::kIo, folder + ": cannot be named: " + error.message()};
  return sync_directory(nullptr, directory_of(folder));
}

}  // namespace

Result<NamespaceNote> read_namespace_note(const std::string& store, const NamespaceHash& name) {
  const std::string path = note_path(store, name);
  std::error_code error;
  if (!fs::exists(path, error)) return NamespaceNote{};
  EMBER_ASSIGN(const std::string bytes, read_small_file(path, kMostNoteBytes));
  const Error damaged{ErrorCode::kCorruption, path + ": damaged"};
  if (bytes.size() < kChecksumBytes) return damaged;
  const std::string_view covered =
      std::string_view(bytes).substr(0, bytes.size() - kChecksumBytes);
  if (load_unaligned<uint64_t>(bytes.data() + covered.size()) != checksum64(as_bytes(covered))) {
    return damaged;
  }
  ByteReader reader(covered);
  if (reader.read<uint32_t>() != kNamespaceMagic) return damaged;
  const auto version = reader.read<uint16_t>();
  if (version != kNamespaceVersion) {
    return Error{ErrorCode::kUnsupported, path + ": found version " + std::to_string(version) +
                                              ", expected " + std::to_string(kNamespaceVersion)};
  }
  const auto count = reader.read<uint16_t>();
  BlockHash tokenizer;
  const std::string_view digest = reader.read_bytes(tokenizer.bytes.size());
  std::copy(digest.begin(), digest.end(), tokenizer.bytes.begin());
  NamespaceNote note;
  note.model = read_text(reader);
  for (uint16_t i = 0; i < count && !reader.failed(); ++i) {
    std::string field = read_text(reader);
    note.fields.emplace_back(std::move(field), read_text(reader));
  }
  if (!reader.finished()) return damaged;
  const std::string folder = tokenizer_path(store, tokenizer);
  if (tokenizer != BlockHash{} && fs::is_directory(folder, error)) note.tokenizer_folder = folder;
  return note;
}

Status write_namespace_note(const std::string& store, const NamespaceHash& name,
                            const NamespaceEntry& entry, uint64_t limit_bytes) {
  EMBER_CHECK(entry.fields.size() <= kMostFields, "a namespace has too many fields");
  const Result<NamespaceNote> found = read_namespace_note(store, name);
  const bool damaged = !found.ok() && found.error().code == ErrorCode::kCorruption;
  if (!found.ok() && !damaged) return found.error();
  const bool noted = found.ok() && !found->fields.empty();
  const BlockHash& digest = entry.tokenizer_digest;
  const std::string folder = tokenizer_path(store, digest);
  std::error_code error;
  const bool kept = digest == BlockHash{} || fs::exists(folder, error);
  if (noted && kept) return {};
  const uint64_t room = directory_bytes(folder_of(store)) + kMostNoteBytes;
  if (room > limit_bytes) {
    return {ErrorCode::kCapacity, folder_of(store) + ": its share of the store is full"};
  }
  EMBER_TRY(make_private_directory(nullptr, folder_of(store)));
  if (!noted) EMBER_TRY(write_durable_file(nullptr, note_path(store, name), encode(entry)));
  if (kept) return {};
  EMBER_ASSIGN(const NamespaceEntry::Files files, entry.tokenizer_files());
  uint64_t bytes = room;
  for (const auto& file : files) bytes += file.second.size();
  if (bytes > limit_bytes) {
    return {ErrorCode::kCapacity, folder_of(store) + ": the tokenizer passes its share"};
  }
  return write_tokenizer(folder, files);
}

}  // namespace ember
