// Wrappers that ask the hooks first.
#include "tests/support/faulty_file_system.h"

#include <cstring>
#include <utility>

namespace ember::testing {
namespace {

using rocksdb::IOStatus;
using rocksdb::Slice;
using Options = rocksdb::IOOptions;
using Debug = rocksdb::IODebugContext;
using Hooks = std::shared_ptr<const FaultHooks>;

IOStatus ask(const Hooks& hooks, FileAct act, const std::string& path) {
  return hooks->before ? hooks->before(act, path) : IOStatus::OK();
}

class FaultyReader final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  FaultyReader(std::unique_ptr<rocksdb::FSRandomAccessFile>&& target, std::string path, Hooks hooks)
      : FSRandomAccessFileOwnerWrapper(std::move(target)),
        path_(std::move(path)),
        hooks_(std::move(hooks)) {}
  IOStatus Read(uint64_t offset, size_t n, const Options& options, Slice* result, char* scratch,
                Debug* debug) const override {
    IOStatus status = ask(hooks_, FileAct::kRead, path_);
    if (!status.ok()) return status;
    status = FSRandomAccessFileOwnerWrapper::Read(offset, n, options, result, scratch, debug);
    if (!status.ok() || !hooks_->after_read) return status;
    std::string bytes = result->ToString();
    hooks_->after_read(path_, offset, bytes);
    std::memcpy(scratch, bytes.data(), bytes.size());
    *result = Slice(scratch, bytes.size());
    return status;
  }
  IOStatus MultiRead(rocksdb::FSReadRequest* requests, size_t count, const Options& options,
                     Debug* debug) override {
    for (size_t i = 0; i < count; ++i) {
      rocksdb::FSReadRequest& one = requests[i];
      one.status = Read(one.offset, one.len, options, &one.result, one.scratch, debug);
    }
    return IOStatus::OK();
  }

 private:
  std::string path_;
  Hooks hooks_;
};

class FaultyWriter final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultyWriter(std::unique_ptr<rocksdb::FSWritableFile>&& target, std::string path, Hooks hooks)
      : FSWritableFileOwnerWrapper(std::move(target)),
        path_(std::move(path)),
        hooks_(std::move(hooks)) {}
  using FSWritableFileOwnerWrapper::Append;
  using FSWritableFileOwnerWrapper::PositionedAppend;
  IOStatus Append(const Slice& data, const Options& options, Debug* debug) override {
    IOStatus status = ask(hooks_, FileAct::kWrite, path_);
    return status.ok() ? FSWritableFileOwnerWrapper::Append(data, options, debug) : status;
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const Options& options,
                            Debug* debug) override {
    IOStatus status = ask(hooks_, FileAct::kWrite, path_);
    if (!status.ok()) return status;
    return FSWritableFileOwnerWrapper::PositionedAppend(data, offset, options, debug);
  }
  IOStatus Sync(const Options& options, Debug* debug) override {
    IOStatus status = ask(hooks_, FileAct::kSync, path_);
    return status.ok() ? FSWritableFileOwnerWrapper::Sync(options, debug) : status;
  }
  IOStatus Fsync(const Options& options, Debug* debug) override {
    IOStatus status = ask(hooks_, FileAct::kSync, path_);
    return status.ok() ? FSWritableFileOwnerWrapper::Fsync(options, debug) : status;
  }

 private:
  std::string path_;
  Hooks hooks_;
};

class FaultyFolder final : public rocksdb::FSDirectory {
 public:
  FaultyFolder(std::unique_ptr<rocksdb::FSDirectory>&& target, std::string path, Hooks hooks)
      : target_(std::move(target)), path_(std::move(path)), hooks_(std::move(hooks)) {}
  IOStatus Fsync(const Options& options, Debug* debug) override {
    IOStatus status = ask(hooks_, FileAct::kFolderSync, path_);
    return status.ok() ? target_->Fsync(options, debug) : status;
  }
  IOStatus FsyncWithDirOptions(const Options& options, Debug* debug,
                               const rocksdb::DirFsyncOptions& more) override {
    IOStatus status = ask(hooks_, FileAct::kFolderSync, path_);
    return status.ok() ? target_->FsyncWithDirOptions(options, debug, more) : status;
  }
  IOStatus Close(const Options& options, Debug* debug) override {
    return target_->Close(options, debug);
  }

 private:
  std::unique_ptr<rocksdb::FSDirectory> target_;
  std::string path_;
  Hooks hooks_;
};

class FaultyFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit FaultyFileSystem(FaultHooks hooks)
      : FileSystemWrapper(rocksdb::FileSystem::Default()),
        hooks_(std::make_shared<const FaultHooks>(std::move(hooks))) {}
  const char* Name() const override { return "EmberFaultyFileSystem"; }

  IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                               Debug* debug) override {
    IOStatus status = FileSystemWrapper::NewRandomAccessFile(path, options, file, debug);
    if (status.ok()) *file = std::make_unique<FaultyReader>(std::move(*file), path, hooks_);
    return status;
  }
  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file, Debug* debug) override {
    IOStatus status = ask(hooks_, FileAct::kCreate, path);
    if (status.ok()) status = FileSystemWrapper::NewWritableFile(path, options, file, debug);
    if (status.ok()) *file = std::make_unique<FaultyWriter>(std::move(*file), path, hooks_);
    return status;
  }
  IOStatus NewDirectory(const std::string& path, const Options& options,
                        std::unique_ptr<rocksdb::FSDirectory>* folder, Debug* debug) override {
    IOStatus status = FileSystemWrapper::NewDirectory(path, options, folder, debug);
    if (status.ok()) *folder = std::make_unique<FaultyFolder>(std::move(*folder), path, hooks_);
    return status;
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const Options& options,
                      Debug* debug) override {
    IOStatus status = ask(hooks_, FileAct::kRename, from);
    return status.ok() ? FileSystemWrapper::RenameFile(from, to, options, debug) : status;
  }
  IOStatus DeleteFile(const std::string& path, const Options& options, Debug* debug) override {
    IOStatus status = ask(hooks_, FileAct::kDelete, path);
    return status.ok() ? FileSystemWrapper::DeleteFile(path, options, debug) : status;
  }

 private:
  Hooks hooks_;
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> make_faulty_file_system(FaultHooks hooks) {
  return std::make_shared<FaultyFileSystem>(std::move(hooks));
}

}  // namespace ember::testing
