// Digest and packing of a model's tokenizer files.
#include "engine/runtime/namespace_entry.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "engine/text/text_file.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

// The tokenizer's own file, and what says how it is used; empty where there is none.
std::vector<std::string> sources(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (const char* name : {"tokenizer.json", "tokenizer.json.gz"}) {
    if (found.empty() && fs::exists(folder / name, error)) found.push_back(folder / name);
  }
  const fs::path config = folder / "tokenizer_config.json";
  if (!found.empty() && fs::exists(config, error)) found.push_back(config);
  return found;
}

}  // namespace

NamespaceEntry make_namespace_entry(const std::string& model_path, const Identity& identity,
                                    const std::string& store_path) {
  NamespaceEntry entry;
  entry.fields = identity.fields;
  std::error_code error;
  entry.model = fs::weakly_canonical(model_path, error).filename().string();
  const Result<NamespaceNote> known = read_namespace_note(store_path, identity.name_space);
  if (known.ok() && !known->tokenizer_folder.empty()) return entry;
  const std::vector<std::string> files = sources(model_path);
  if (files.empty()) return entry;
  std::string all;
  for (const std::string& path : files) {
    const Result<std::string> text = read_text_file(path);
    if (!text.ok()) return entry;
    append_value(all, static_cast<uint64_t>(text->size()));
    all += *text;
  }
  entry.tokenizer_digest = digest128(as_bytes(all));
  entry.tokenizer_files = [files]() -> Result<NamespaceEntry::Files> {
    NamespaceEntry::Files kept;
    for (const std::string& path : files) {
      EMBER_ASSIGN(std::string text, read_text_file(path));
      const bool config = path.ends_with("_config.json");
      if (!config) {
        EMBER_ASSIGN(text, gzip_text(text));
      }
      kept.emplace_back(config ? "tokenizer_config.json" : "tokenizer.json.gz", std::move(text));
    }
    return kept;
  };
  return entry;
}

}  // namespace ember
