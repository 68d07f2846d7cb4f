// Fingerprint: XXH3-128 over the tensors, and the remembered file (text, with a checksum at its
// end).
#include "engine/checkpoint/fingerprint.h"

#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/bytes.h"

namespace ember {
namespace {

constexpr size_t kHashChunkBytes = size_t{8} << 20;
constexpr size_t kSamples = 64;
constexpr size_t kSampleBytes = 4096;
constexpr std::string_view kFirstLine = "emberkv fingerprint 1\n";

// A running XXH3-128 whose fields are framed by their length.
class Digest {
 public:
  Digest() : state_(XXH3_createState()) {
    EMBER_CHECK(state_ != nullptr && XXH3_128bits_reset(state_) == XXH_OK, "no hash state");
  }
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;
  ~Digest() { XXH3_freeState(state_); }

  void add(const void* data, size_t bytes) {
    EMBER_CHECK(XXH3_128bits_update(state_, data, bytes) == XXH_OK, "hash update failed");
  }
  void add_number(uint64_t number) { add(&number, sizeof number); }
  void add_text(std::string_view text) {
    add_number(text.size());
    add(text.data(), text.size());
  }
  BlockHash finish() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_));
    BlockHash hash;
    std::copy(std::begin(canonical.digest), std::end(canonical.digest), hash.bytes.begin());
    return hash;
  }

 private:
  XXH3_state_t* state_;
};

std::string hex_of(const BlockHash& hash) { return to_hex(as_bytes(hash.view())); }

std::string checksum_line(const std::string& text) {
  return "check " + std::to_string(XXH3_64bits(text.data(), text.size())) + "\n";
}

BlockHash sample_hash(ConstBytes bytes) {
  Digest digest;
  const size_t last = bytes.size() > kSampleBytes ? bytes.size() - kSampleBytes : 0;
  for (size_t i = 0; i < kSamples; ++i) {
    const size_t from = last / (kSamples - 1) * i + last % (kSamples - 1) * i / (kSamples - 1);
    digest.add(bytes.data() + from, std::min(kSampleBytes, bytes.size() - from));
  }
  return digest.finish();
}

// The whole remembered file: what it was made from, the digest, a checksum of all before it.
std::string remembered_text(const std::string& description, std::string_view digest_hex) {
  std::string text(kFirstLine);
  text += description + "fingerprint " + std::string(digest_hex) + "\n";
  return text + checksum_line(text);
}

}  // namespace

BlockHash hash_tensors(const NamedTensors& tensors, const std::function<void(double)>& progress) {
  uint64_t total = 0;
  for (const auto& [name, view] : tensors) total += view.bytes.size();
  Digest digest;
  uint64_t done = 0;
  for (const auto& [name, view] : tensors) {
    digest.add_text(name);
    digest.add_number(static_cast<uint64_t>(view.dtype));
    digest.add_number(view.shape.size());
    for (const size_t extent : view.shape) digest.add_number(extent);
    digest.add_number(view.bytes.size());
    for (size_t from = 0; from < view.bytes.size(); from += kHashChunkBytes) {
      const size_t bytes = std::min(kHashChunkBytes, view.bytes.size() - from);
      digest.add(view.bytes.data() + from, bytes);
      done += bytes;
      if (progress) progress(static_cast<double>(done) / static_cast<double>(total));
    }
  }
  return digest.finish();
}

std::string describe_files(const std::vector<std::shared_ptr<const MappedFile>>& files,
                           const NamedTensors& tensors) {
  std::string text;
  Digest places;
  for (const auto& file : files) {
    text += "file " + std::to_string(file->bytes().size()) + " " + std::to_string(file->inode()) +
            " " + std::to_string(file->modified_ns()) + " " + std::to_string(file->changed_ns()) +
            " " + hex_of(sample_hash(file->bytes())) + " " +
            std::filesystem::path(file->path()).filename().string() + "\n";
    // Which tensor the index takes from which file, and from where in it.
    for (const auto& [name, view] : tensors) {
      const ConstBytes bytes = file->bytes();
      const bool inside = view.bytes.data() >= bytes.data() &&
                          view.bytes.data() + view.bytes.size() <= bytes.data() + bytes.size();
      if (!inside) continue;
      places.add_text(name);
      places.add_number(static_cast<uint64_t>(view.bytes.data() - bytes.data()));
    }
  }
  return text + "tensors " + std::to_string(tensors.size()) + " " + hex_of(places.finish()) + "\n";
}

std::string remembered_path(const std::string& folder) {
  std::filesystem::path cache;
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (xdg != nullptr && *xdg == '/') {
    cache = xdg;
  } else if (home != nullptr && *home == '/') {
    cache = std::filesystem::path(home) / ".cache";
  } else {
    return {};
  }
  std::error_code failed;
  const std::string real = std::filesystem::weakly_canonical(folder, failed).string();
  const std::string name = hex_of(digest128(as_bytes(real)));
  return (cache / "emberkv" / "fingerprints" / name).string();
}

bool recall_fingerprint(const std::string& path, const std::string& description,
                        BlockHash& digest) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  std::string text;
  text.resize(remembered_text(description, hex_of(digest)).size() + 32);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));

  const size_t digest_at = kFirstLine.size() + description.size() + sizeof("fingerprint ") - 1;
  if (text.size() < digest_at + 2 * sizeof digest.bytes) return false;
  const std::string hex = text.substr(digest_at, 2 * sizeof digest.bytes);
  const auto bytes = from_hex(hex);
  if (!bytes || text != remembered_text(description, hex)) return false;
  std::copy(bytes->begin(), bytes->end(), digest.bytes.begin());
  return true;
}

void remember_fingerprint(const std::string& path, const std::string& description,
                          const BlockHash& digest) {
  namespace fs = std::filesystem;
  std::error_code failed;
  fs::create_directories(fs::path(path).parent_path(), failed);
  const std::string unfinished = path + "." + std::to_string(::getpid()) + ".part";
  {
    std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
    file << remembered_text(description, hex_of(digest));
    file.close();
    if (!file) {
      fs::remove(unfinished, failed);
      return;
    }
  }
  fs::rename(unfinished, path, failed);
  if (failed) fs::remove(unfinished, failed);
}

}  // namespace ember
