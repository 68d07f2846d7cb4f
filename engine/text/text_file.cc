// Text file: reading with a bound, and zlib's inflate over all members of a gzip.
#include "engine/text/text_file.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

namespace ember {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib: the largest window, gzip header and trailer
constexpr size_t kChunk = size_t{256} << 10;

Error too_large(const std::string& path, const char* what) {
  return {ErrorCode::kCapacity, path + ": " + what + " more than " +
                                    std::to_string(kMaxTextFileBytes >> 20) +
                                    " MiB, the most that is read of such a file"};
}

Error io_error(const std::string& path) {
  return {ErrorCode::kIo, path + ": cannot be read: " + std::strerror(errno)};
}

Status read_raw(const std::string& path, std::string& bytes) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file) return io_error(path);
  size_t got = 0;
  do {
    const size_t before = bytes.size();
    bytes.resize(before + kChunk);
    errno = 0;
    got = std::fread(bytes.data() + before, 1, kChunk, file.get());
    bytes.resize(before + got);
    if (bytes.size() > kMaxTextFileBytes) return too_large(path, "holds");
  } while (got == kChunk);
  if (std::ferror(file.get()) != 0) return io_error(path);
  return {};
}

class Inflater {
 public:
  Inflater() { ready_ = inflateInit2(&stream_, kGzipWindow) == Z_OK; }
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Result<std::string> run(const std::string& path, std::string packed);

 private:
  Error damaged(const std::string& path, const std::string& why, size_t packed_size) const {
    const size_t at = packed_size - stream_.avail_in;
    return {ErrorCode::kCorruption,
            path + ": damaged gzip at byte " + std::to_string(at) + ": " + why};
  }

  z_stream stream_{};
  bool ready_ = false;
};

Result<std::string> Inflater::run(const std::string& path, std::string packed) {
  if (!ready_) return Error{ErrorCode::kIo, path + ": zlib could not be started (no memory)"};
  stream_.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream_.avail_in = static_cast<uInt>(packed.size());
  std::string text;
  while (true) {
    const size_t before = text.size();
    text.resize(before + kChunk);
    stream_.next_out = reinterpret_cast<Bytef*>(text.data() + before);
    stream_.avail_out = static_cast<uInt>(kChunk);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    text.resize(before + kChunk - stream_.avail_out);
    if (text.size() > kMaxTextFileBytes) return too_large(path, "unpacks to");
    if (code == Z_STREAM_END) {
      if (stream_.avail_in == 0) return text;
      if (inflateReset(&stream_) != Z_OK) return damaged(path, "zlib reset", packed.size());
    } else if (code == Z_BUF_ERROR ||
               (code == Z_OK && stream_.avail_in == 0 && stream_.avail_out != 0)) {
      return damaged(path, "it ends before its end mark", packed.size());
    } else if (code != Z_OK) {
      const char* why = stream_.msg != nullptr ? stream_.msg : "zlib cannot go on";
      return damaged(path, why, packed.size());
    }
  }
}

}  // namespace

Result<std::string> read_text_file(const std::string& path) {
  std::string bytes;
  EMBER_TRY(read_raw(path, bytes));
  return unpack_text(std::move(bytes), path);
}

Result<std::string> unpack_text(std::string bytes, const std::string& name) {
  if (!bytes.starts_with("\x1F\x8B")) return bytes;
  return Inflater().run(name, std::move(bytes));
}

Result<std::string> gzip_text(const std::string& bytes) {
  z_stream stream = {};
  const Error no_memory{ErrorCode::kCapacity,
                        "zlib has no memory to pack " + std::to_string(bytes.size()) + " bytes"};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return no_memory;
  }
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int code = deflate(&stream, Z_FINISH);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  if (code != Z_STREAM_END) return no_memory;
  return packed;
}

}  // namespace ember
