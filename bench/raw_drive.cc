// Raw drive: one big file, read and written in aligned calls.
#include "bench/raw_drive.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "base/prng.h"

namespace ember {
namespace {

constexpr size_t kAlignment = 4096;
constexpr size_t kWriteBytes = size_t{4} << 20;

struct Freed {
  void operator()(void* memory) const { std::free(memory); }
};
using AlignedBuffer = std::unique_ptr<void, Freed>;

AlignedBuffer aligned(size_t bytes) {
  AlignedBuffer buffer(std::aligned_alloc(kAlignment, bytes));
  auto* words = static_cast<uint64_t*>(buffer.get());
  for (size_t i = 0; i < bytes / 8; ++i) words[i] = mix64(i);
  return buffer;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Error file_error(const std::string& path, const char* what) {
  return {ErrorCode::kIo, path + ": " + what + ": " + std::strerror(errno)};
}

}  // namespace

Result<std::unique_ptr<RawDrive>> RawDrive::open(const std::string& folder, uint64_t bytes) {
  std::unique_ptr<RawDrive> drive(
      new RawDrive(folder + "/raw", std::max<uint64_t>(bytes / kWriteBytes, 1) * kWriteBytes));
  int file = ::open(drive->path_.c_str(), O_CREAT | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
  drive->direct_ = file >= 0;
  if (file < 0) file = ::open(drive->path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) return file_error(drive->path_, "open");
  ::close(file);
  return drive;
}

RawDrive::~RawDrive() { ::unlink(path_.c_str()); }

Result<double> RawDrive::write() {
  ::unlink(path_.c_str());  // new blocks, as RocksDB's files are
  const int flags = O_CREAT | O_RDWR | O_CLOEXEC | (direct_ ? O_DIRECT : 0);
  const int file = ::open(path_.c_str(), flags, 0600);
  if (file < 0) return file_error(path_, "open");
  const AlignedBuffer buffer = aligned(kWriteBytes);
  const auto start = std::chrono::steady_clock::now();
  bool good = true;
  for (uint64_t at = 0; good && at < bytes_; at += kWriteBytes) {
    good = ::pwrite(file, buffer.get(), kWriteBytes, static_cast<off_t>(at)) ==
           static_cast<ssize_t>(kWriteBytes);
  }
  good = good && ::fdatasync(file) == 0;
  const double seconds = seconds_since(start);
  ::close(file);
  if (!good) return file_error(path_, "write");
  return static_cast<double>(bytes_) / seconds;
}

Result<double> RawDrive::read(size_t size, int threads, uint64_t seed) {
  const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | (direct_ ? O_DIRECT : 0));
  if (file < 0) return file_error(path_, "open");
  const uint64_t calls = bytes_ / size;
  std::atomic<uint64_t> next = 0;
  std::atomic<bool> good = true;
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::jthread> readers;
  for (int t = 0; t < threads; ++t) {
    readers.emplace_back([&, t] {
      const AlignedBuffer buffer = aligned(size);
      Prng prng(seed + static_cast<uint64_t>(t));
      while (next.fetch_add(1) < calls) {
        const auto at = static_cast<off_t>(prng.below(calls) * size);
        if (::pread(file, buffer.get(), size, at) != static_cast<ssize_t>(size)) good = false;
      }
    });
  }
  readers.clear();
  const double seconds = seconds_since(start);
  ::close(file);
  if (!good) return file_error(path_, "read");
  return static_cast<double>(calls * size) / seconds;
}

}  // namespace ember
