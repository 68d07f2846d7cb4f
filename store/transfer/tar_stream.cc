// Tar by libarchive: the ustar format alone, and callbacks for the bytes.
#include "store/transfer/tar_stream.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/check.h"

namespace ember {
namespace {

constexpr size_t kChunkBytes = size_t{128} << 10;
constexpr uint64_t kMostUstarBytes = (uint64_t{1} << 33) - 1;
// Programs that write tars fill up their last record: of 20 blocks, as a rule.
constexpr uint64_t kMostPaddingBytes = uint64_t{1} << 20;

struct CloseEntry {
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};
struct CloseWriter {
  void operator()(archive* tar) const { archive_write_free(tar); }
};
struct CloseReader {
  void operator()(archive* tar) const { archive_read_free(tar); }
};

std::string text_of(archive* tar) {
  const char* text = archive_error_string(tar);
  return text == nullptr ? "unknown trouble" : text;
}

class TarWriterImpl final : public TarWriter {
 public:
  explicit TarWriterImpl(ByteSink sink) : sink_(std::move(sink)) {
    EMBER_CHECK(tar_ != nullptr && entry_ != nullptr, "no memory for a tar");
    const bool set = archive_write_set_format_ustar(tar_.get()) == ARCHIVE_OK &&
                     archive_write_set_bytes_per_block(tar_.get(), 0) == ARCHIVE_OK &&
                     archive_write_open2(tar_.get(), this, nullptr, take, nullptr, nullptr) ==
                         ARCHIVE_OK;
    EMBER_CHECK(set, "libarchive writes no ustar");
  }
  // What was not ended is not made to look whole.
  ~TarWriterImpl() override { archive_write_fail(tar_.get()); }

  Status add(const std::string& name, std::string_view body, int64_t unix_s) override {
    if (body.size() > kMostUstarBytes) {
      return {ErrorCode::kCapacity, name + ": has " + std::to_string(body.size()) + " bytes"};
    }
    archive_entry_clear(entry_.get());
    archive_entry_set_pathname(entry_.get(), name.c_str());
    archive_entry_set_size(entry_.get(), static_cast<la_int64_t>(body.size()));
    archive_entry_set_filetype(entry_.get(), AE_IFREG);
    archive_entry_set_perm(entry_.get(), 0600);
    archive_entry_set_mtime(entry_.get(), unix_s, 0);
    if (archive_write_header(tar_.get(), entry_.get()) != ARCHIVE_OK) return failed();
    const la_ssize_t written = archive_write_data(tar_.get(), body.data(), body.size());
    if (written != static_cast<la_ssize_t>(body.size())) return failed();
    return archive_write_finish_entry(tar_.get()) == ARCHIVE_OK ? Status() : failed();
  }

  Status end() override {
    return archive_write_close(tar_.get()) == ARCHIVE_OK ? Status() : failed();
  }

 private:
  static la_ssize_t take(archive* tar, void* self, const void* bytes, size_t size) {
    auto* writer = static_cast<TarWriterImpl*>(self);
    writer->trouble_ = writer->sink_({static_cast<const char*>(bytes), size});
    if (writer->trouble_.ok()) return static_cast<la_ssize_t>(size);
    archive_set_error(tar, EIO, "refused");
    return -1;
  }
  Status failed() const {
    if (!trouble_.ok()) return trouble_;
    return {ErrorCode::kIo, "tar: " + text_of(tar_.get())};
  }

  ByteSink sink_;
  Status trouble_;
  std::unique_ptr<archive, CloseWriter> tar_{archive_write_new()};
  std::unique_ptr<archive_entry, CloseEntry> entry_{archive_entry_new()};
};

class TarReaderImpl final : public TarReader {
 public:
  explicit TarReaderImpl(ByteSource source) : source_(std::move(source)), chunk_(kChunkBytes) {
    EMBER_CHECK(tar_ != nullptr, "no memory for a tar");
    EMBER_CHECK(archive_read_support_format_tar(tar_.get()) == ARCHIVE_OK, "libarchive has no tar");
  }

  Result<std::optional<TarEntry>> next() override {
    if (!open_) {
      open_ = true;
      if (archive_read_open2(tar_.get(), this, nullptr, give, nullptr, nullptr) != ARCHIVE_OK) {
        return failed("cannot be read");
      }
    }
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(tar_.get(), &entry);
    if (code == ARCHIVE_EOF) {
      EMBER_TRY(read_padding());
      return std::optional<TarEntry>();
    }
    if (code != ARCHIVE_OK) return failed("is no tar that can be read");
    const char* name = archive_entry_pathname(entry);
    const bool plain = archive_format(tar_.get()) == ARCHIVE_FORMAT_TAR_USTAR &&
                       archive_entry_filetype(entry) == AE_IFREG && name != nullptr &&
                       archive_entry_size_is_set(entry) != 0 && archive_entry_size(entry) >= 0 &&
                       archive_entry_hardlink(entry) == nullptr &&
                       archive_entry_symlink(entry) == nullptr &&
                       archive_entry_sparse_count(entry) == 0;
    if (!plain) return damaged("it has an entry that is no plain file of the ustar format");
    left_ = static_cast<uint64_t>(archive_entry_size(entry));
    return std::optional<TarEntry>(TarEntry{name, left_});
  }

  Status read(uint64_t most, std::string& body) override {
    body.clear();
    if (left_ > most) {
      return damaged("an entry has " + std::to_string(left_) + " bytes, expected at most " +
                     std::to_string(most));
    }
    while (left_ > 0) {
      const size_t before = body.size();
      const auto piece = static_cast<size_t>(std::min<uint64_t>(left_, kChunkBytes));
      body.resize(before + piece);
      const la_ssize_t got = archive_read_data(tar_.get(), body.data() + before, piece);
      if (got < 0) return failed("an entry cannot be read");
      if (got == 0) return damaged("it ends within an entry: it was cut short");
      body.resize(before + static_cast<size_t>(got));
      left_ -= static_cast<uint64_t>(got);
    }
    return {};
  }

 private:
  static la_ssize_t give(archive* tar, void* self, const void** bytes) {
    auto* reader = static_cast<TarReaderImpl*>(self);
    Result<size_t> got = reader->source_(reader->chunk_.data(), reader->chunk_.size());
    if (!got.ok()) {
      reader->trouble_ = got.error();
      archive_set_error(tar, EIO, "refused");
      return -1;
    }
    reader->chunk_bytes_ = *got;
    reader->given_ += *got;
    *bytes = reader->chunk_.data();
    return static_cast<la_ssize_t>(*got);
  }

  // What is left of the chunk that was given last, then all that the source still has.
  Status read_padding() {
    const auto taken = static_cast<uint64_t>(std::max<la_int64_t>(
        archive_filter_bytes(tar_.get(), -1), 0));
    const auto left = static_cast<size_t>(
        std::min<uint64_t>(given_ - std::min(given_, taken), chunk_bytes_));
    std::string_view rest(chunk_.data() + chunk_bytes_ - left, left);
    uint64_t padding = 0;
    while (true) {
      padding += rest.size();
      if (rest.find_first_not_of('\0') != std::string_view::npos || padding > kMostPaddingBytes) {
        return damaged("something follows its end");
      }
      EMBER_ASSIGN(const size_t got, source_(chunk_.data(), chunk_.size()));
      if (got == 0) break;
      rest = {chunk_.data(), got};
    }
    return {};
  }

  Error damaged(const std::string& what) const { return {ErrorCode::kCorruption, what}; }
  Error failed(const char* what) const {
    if (!trouble_.ok()) return trouble_.error();
    return damaged(std::string(what) + ": " + text_of(tar_.get()));
  }

  ByteSource source_;
  std::vector<char> chunk_;
  size_t chunk_bytes_ = 0;
  uint64_t given_ = 0;
  uint64_t left_ = 0;
  bool open_ = false;
  Status trouble_;
  std::unique_ptr<archive, CloseReader> tar_{archive_read_new()};
};

}  // namespace

std::unique_ptr<TarWriter> TarWriter::make(ByteSink sink) {
  return std::make_unique<TarWriterImpl>(std::move(sink));
}

std::unique_ptr<TarReader> TarReader::make(ByteSource source) {
  return std::make_unique<TarReaderImpl>(std::move(source));
}

}  // namespace ember
