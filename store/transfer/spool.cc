// A nameless file of sealed chunks.
#include "store/transfer/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "store/disk/private_file.h"
#include "store/disk/seal.h"

namespace ember {
namespace {

constexpr size_t kChunkBytes = size_t{256} << 10;
constexpr size_t kSealedBytes = kChunkBytes + kTagBytes;

// Where the file system knows no nameless files, one that loses its name at once.
Result<File> make_file(const std::string& folder) {
  const int nameless = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (nameless >= 0) return File(nameless);
  std::string path = folder + "/.import-" + std::string(6, 'X');
  const int named = ::mkostemp(path.data(), O_CLOEXEC);
  if (named < 0) return system_error(folder, "no file can be made there", errno);
  ::unlink(path.c_str());
  return File(named);
}

class SpoolImpl final : public Spool {
 public:
  SpoolImpl(File file, std::string folder, uint64_t most_bytes)
      : file_(std::move(file)), folder_(std::move(folder)), most_bytes_(most_bytes) {}

  Status write(std::string_view bytes) override {
    if (bytes.size() > most_bytes_ - bytes_) {
      return {ErrorCode::kCapacity, "it has more than the " + std::to_string(most_bytes_) +
                                        " bytes that there is room for"};
    }
    bytes_ += bytes.size();
    while (!bytes.empty()) {
      const size_t piece = std::min(bytes.size(), kChunkBytes - plain_.size());
      plain_ += bytes.substr(0, piece);
      bytes.remove_prefix(piece);
      if (plain_.size() == kChunkBytes) EMBER_TRY(seal_chunk());
    }
    return {};
  }

  Status begin_reading() override {
    if (!plain_.empty()) EMBER_TRY(seal_chunk());
    written_chunks_ = std::exchange(chunk_, 0);
    return {};
  }

  Result<size_t> read(char* to, size_t most) override {
    if (at_ == plain_.size()) {
      if (chunk_ == written_chunks_) return size_t{0};
      EMBER_TRY(open_chunk());
    }
    const size_t piece = std::min(most, plain_.size() - at_);
    std::memcpy(to, plain_.data() + at_, piece);
    at_ += piece;
    return piece;
  }

  uint64_t bytes() const override { return bytes_; }

 private:
  // A chunk's number is its nonce: no two are sealed with one.
  Nonce nonce() const {
    Nonce nonce{};
    std::memcpy(nonce.data(), &chunk_, sizeof chunk_);
    return nonce;
  }
  static constexpr std::string_view kContext = "import";

  Status seal_chunk() {
    sealed_.clear();
    key_.seal(nonce(), kContext, plain_, sealed_);
    plain_.clear();
    std::string_view rest = sealed_;
    auto at = static_cast<off_t>(chunk_ * kSealedBytes);
    while (!rest.empty()) {
      const ssize_t written = ::pwrite(file_.fd(), rest.data(), rest.size(), at);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return system_error(folder_, "the import cannot be kept there", errno);
      rest.remove_prefix(static_cast<size_t>(written));
      at += written;
    }
    ++chunk_;
    return {};
  }

  Status open_chunk() {
    sealed_.resize(kSealedBytes);
    size_t got = 0;
    const auto from = static_cast<off_t>(chunk_ * kSealedBytes);
    while (got < sealed_.size()) {
      const ssize_t read = ::pread(file_.fd(), sealed_.data() + got, sealed_.size() - got,
                                   from + static_cast<off_t>(got));
      if (read < 0 && errno == EINTR) continue;
      if (read < 0) return system_error(folder_, "what was kept there cannot be read", errno);
      if (read == 0) break;
      got += static_cast<size_t>(read);
    }
    sealed_.resize(got);
    if (!key_.open(nonce(), kContext, sealed_, plain_)) {
      return {ErrorCode::kCorruption, folder_ + ": what was kept there has changed"};
    }
    at_ = 0;
    ++chunk_;
    // What is entered need not lie there twice; a file system that cannot do it keeps it longer.
    static_cast<void>(::fallocate(file_.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from,
                                  static_cast<off_t>(kSealedBytes)));
    return {};
  }

  const File file_;
  const std::string folder_;
  const uint64_t most_bytes_;
  const SealingKey key_{SecretKey::random()};
  uint64_t bytes_ = 0;
  uint64_t chunk_ = 0;
  uint64_t written_chunks_ = 0;
  std::string plain_;  // written: what waits; read: what is left of a chunk
  size_t at_ = 0;
  std::string sealed_;
};

}  // namespace

Result<std::unique_ptr<Spool>> Spool::make(const std::string& folder, uint64_t most_bytes) {
  EMBER_ASSIGN(File file, make_file(folder));
  return std::unique_ptr<Spool>(std::make_unique<SpoolImpl>(std::move(file), folder, most_bytes));
}

}  // namespace ember
