// Small drive: a file system of so many bytes, all of which are counted below one folder. Its size
// can change, as if others wrote beside us.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <memory>
#include <string>

#include "tests/store/disk/disk_store_testing.h"

namespace ember {

struct DriveSize {
  std::string root;
  std::atomic<uint64_t> bytes{0};
  uint64_t free_bytes() const {
    const uint64_t used = bytes_below(root);
    return bytes > used ? bytes - used : 0;
  }
};

class SmallDriveWriter final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  SmallDriveWriter(std::unique_ptr<rocksdb::FSWritableFile>&& target,
                   std::shared_ptr<DriveSize> drive)
      : FSWritableFileOwnerWrapper(std::move(target)), drive_(std::move(drive)) {}
  using FSWritableFileOwnerWrapper::Append;
  using FSWritableFileOwnerWrapper::PositionedAppend;
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    if (!fits(data)) return rocksdb::IOStatus::NoSpace("the small drive is full");
    return FSWritableFileOwnerWrapper::Append(data, options, debug);
  }
  rocksdb::IOStatus PositionedAppend(const rocksdb::Slice& data, uint64_t offset,
                                     const rocksdb::IOOptions& options,
                                     rocksdb::IODebugContext* debug) override {
    if (!fits(data)) return rocksdb::IOStatus::NoSpace("the small drive is full");
    return FSWritableFileOwnerWrapper::PositionedAppend(data, offset, options, debug);
  }

 private:
  bool fits(const rocksdb::Slice& data) const { return data.size() <= drive_->free_bytes(); }
  std::shared_ptr<DriveSize> drive_;
};

class SmallDrive final : public rocksdb::FileSystemWrapper {
 public:
  explicit SmallDrive(std::shared_ptr<DriveSize> drive)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), drive_(std::move(drive)) {}
  const char* Name() const override { return "SmallDrive"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = FileSystemWrapper::NewWritableFile(path, options, file, debug);
    if (status.ok()) *file = std::make_unique<SmallDriveWriter>(std::move(*file), drive_);
    return status;
  }
  rocksdb::IOStatus GetFreeSpace(const std::string&, const rocksdb::IOOptions&,
                                 uint64_t* free_bytes, rocksdb::IODebugContext*) override {
    *free_bytes = drive_->free_bytes();
    return rocksdb::IOStatus::OK();
  }

 private:
  std::shared_ptr<DriveSize> drive_;
};

}  // namespace ember
