// The model kept in step with the files; the after-states are drawn in power_cut_after.cc.
#include "tests/support/power_cut_file_system.h"

#include <rocksdb/env.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "tests/support/power_cut_after.h"
#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

namespace fs = std::filesystem;
using rocksdb::IOStatus;

std::shared_ptr<CutNode> read_tree(const fs::path& path) {
  auto node = std::make_shared<CutNode>();
  node->folder = fs::is_directory(path);
  if (!node->folder) {
    node->synced = read_file(path.string());
    node->size = node->synced.size();
    return node;
  }
  for (const auto& entry : fs::directory_iterator(path)) {
    if (!entry.is_directory() && !entry.is_regular_file()) continue;
    node->names[entry.path().filename().string()] = read_tree(entry.path());
  }
  node->synced_names = node->names;
  return node;
}

// The page cache is the machine's; what is synced is the model's. So no file is opened past it.
rocksdb::FileOptions through_cache(rocksdb::FileOptions options) {
  options.use_direct_reads = options.use_direct_writes = false;
  return options;
}

}  // namespace

class CutWriter final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using Options = rocksdb::IOOptions;
  using Debug = rocksdb::IODebugContext;
  using Proof = rocksdb::DataVerificationInfo;
  CutWriter(std::unique_ptr<rocksdb::FSWritableFile>&& target, PowerCutFileSystem& files,
            std::shared_ptr<CutNode> node, std::string path, bool direct)
      : FSWritableFileOwnerWrapper(std::move(target)),
        files_(files),
        node_(std::move(node)),
        path_(std::move(path)),
        direct_(direct) {}

  // RocksDB takes its path of whole pages, padded and cut at the end, as on a drive.
  bool use_direct_io() const override { return direct_; }

  IOStatus Append(const rocksdb::Slice& data, const Options& options, Debug* debug) override {
    return files_.change(*node_, {0, end_, data.ToString(), false}, [&] {
      end_ += data.size();
      return FSWritableFileOwnerWrapper::Append(data, options, debug);
    });
  }
  IOStatus Append(const rocksdb::Slice& data, const Options& options, const Proof&,
                  Debug* debug) override {
    return Append(data, options, debug);
  }
  IOStatus PositionedAppend(const rocksdb::Slice& data, uint64_t offset, const Options& options,
                            Debug* debug) override {
    return files_.change(*node_, {0, offset, data.ToString(), false}, [&] {
      end_ = std::max(end_, offset + data.size());
      return FSWritableFileOwnerWrapper::PositionedAppend(data, offset, options, debug);
    });
  }
  IOStatus PositionedAppend(const rocksdb::Slice& data, uint64_t offset, const Options& options,
                            const Proof&, Debug* debug) override {
    return PositionedAppend(data, offset, options, debug);
  }
  IOStatus Truncate(uint64_t size, const Options& options, Debug* debug) override {
    return files_.change(*node_, {0, size, "", true}, [&] {
      end_ = size;
      return FSWritableFileOwnerWrapper::Truncate(size, options, debug);
    });
  }
  IOStatus Sync(const Options&, Debug*) override { return files_.sync(*node_, path_); }
  IOStatus Fsync(const Options&, Debug*) override { return files_.sync(*node_, path_); }
  IOStatus RangeSync(uint64_t, uint64_t, const Options&, Debug*) override { return IOStatus::OK(); }
  IOStatus Allocate(uint64_t, uint64_t, const Options&, Debug*) override { return IOStatus::OK(); }

 private:
  PowerCutFileSystem& files_;
  std::shared_ptr<CutNode> node_;
  std::string path_;
  bool direct_;
  uint64_t end_ = 0;
};

class CutFolder final : public rocksdb::FSDirectory {
 public:
  CutFolder(PowerCutFileSystem& files, std::shared_ptr<CutNode> node, std::string path)
      : files_(files), node_(std::move(node)), path_(std::move(path)) {}
  IOStatus Fsync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return files_.sync(*node_, path_);
  }
  IOStatus Close(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return IOStatus::OK();
  }

 private:
  PowerCutFileSystem& files_;
  std::shared_ptr<CutNode> node_;
  std::string path_;
};

PowerCutFileSystem::PowerCutFileSystem(PowerCutOptions options)
    : FileSystemWrapper(rocksdb::FileSystem::Default()), options_(std::move(options)) {
  fs::create_directories(options_.root);
  options_.root = fs::canonical(options_.root).string();
  root_ = read_tree(options_.root);
}

uint64_t PowerCutFileSystem::operations() const {
  MutexLock lock(mutex_);
  return operations_;
}

bool PowerCutFileSystem::is_cut() const {
  MutexLock lock(mutex_);
  return cut_;
}

void PowerCutFileSystem::cut() {
  MutexLock lock(mutex_);
  cut_ = true;
}

IOStatus PowerCutFileSystem::off() const { return IOStatus::IOError("the power is off"); }

bool PowerCutFileSystem::begin(bool* last) {
  if (cut_) return false;
  ++operations_;
  cut_ = options_.cut_at != 0 && operations_ >= options_.cut_at;
  *last = cut_;
  return true;
}

// The folder that holds the name. What a store makes beside this file system (by mkdir, say) it
// has not made durable, and the model says so: its parent is unknown here.
PowerCutFileSystem::Place PowerCutFileSystem::place_of(const std::string& path) {
  fs::path whole = fs::absolute(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  const fs::path relative = whole.lexically_relative(options_.root);
  Place place{root_, ""};
  for (const fs::path& part : relative) {
    if (!place.name.empty()) {
      const auto found = place.folder->names.find(place.name);
      EMBER_CHECK(found != place.folder->names.end() && found->second->folder,
                  "a folder was made beside the file system");
      place.folder = found->second;
    }
    place.name = part.string();
  }
  return place;
}

void PowerCutFileSystem::change_names(const std::shared_ptr<CutNode>& folder,
                                      CutNode::NameChange change) {
  change.order = operations_;
  if (!change.removed.empty()) folder->names.erase(change.removed);
  if (!change.added.empty()) folder->names[change.added] = change.target;
  folder->name_changes.push_back(std::move(change));
}

IOStatus PowerCutFileSystem::change(CutNode& node, CutNode::Change change,
                                    const std::function<IOStatus()>& work) {
  MutexLock lock(mutex_);
  bool last = false;
  if (!begin(&last)) return off();
  change.order = operations_;
  node.size = change.truncates ? change.offset
                               : std::max<uint64_t>(node.size, change.offset + change.bytes.size());
  node.changes.push_back(std::move(change));
  return last ? off() : work();
}

IOStatus PowerCutFileSystem::sync(CutNode& node, const std::string& path) {
  MutexLock lock(mutex_);
  bool last = false;
  if (!begin(&last) || last) return off();
  if (options_.swallow_sync && options_.swallow_sync(path, node.folder)) return IOStatus::OK();
  if (node.folder) {
    node.synced_names = node.names;
    node.name_changes.clear();
    return IOStatus::OK();
  }
  for (const CutNode::Change& change : node.changes) apply_change(node.synced, change);
  node.changes.clear();
  return IOStatus::OK();
}

IOStatus PowerCutFileSystem::NewSequentialFile(const std::string& path,
                                               const rocksdb::FileOptions& options,
                                               std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                               Debug* debug) {
  if (is_cut()) return off();
  return FileSystemWrapper::NewSequentialFile(path, through_cache(options), file, debug);
}

IOStatus PowerCutFileSystem::NewRandomAccessFile(const std::string& path,
                                                 const rocksdb::FileOptions& options,
                                                 std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                                 Debug* debug) {
  if (is_cut()) return off();
  return FileSystemWrapper::NewRandomAccessFile(path, through_cache(options), file, debug);
}

IOStatus PowerCutFileSystem::NewWritableFile(const std::string& path,
                                             const rocksdb::FileOptions& options,
                                             std::unique_ptr<rocksdb::FSWritableFile>* file,
                                             Debug* debug) {
  std::shared_ptr<CutNode> node;
  {
    MutexLock lock(mutex_);
    bool last = false;
    if (!begin(&last)) return off();
    Place place = place_of(path);
    const auto found = place.folder->names.find(place.name);
    if (found != place.folder->names.end()) {
      node = found->second;
      node->changes.push_back({operations_, 0, "", true});
      node->size = 0;
    } else {
      node = std::make_shared<CutNode>();
      change_names(place.folder, {0, "", place.name, node});
    }
    if (last) return off();
  }
  IOStatus status = FileSystemWrapper::NewWritableFile(path, through_cache(options), file, debug);
  if (status.ok()) {
    *file = std::make_unique<CutWriter>(std::move(*file), *this, std::move(node), path,
                                        options.use_direct_writes);
  }
  return status;
}

IOStatus PowerCutFileSystem::NewDirectory(const std::string& path, const Options&,
                                          std::unique_ptr<rocksdb::FSDirectory>* folder, Debug*) {
  MutexLock lock(mutex_);
  if (cut_) return off();
  Place place = place_of(path);
  std::shared_ptr<CutNode> node = root_;
  if (place.name != ".") {
    const auto found = place.folder->names.find(place.name);
    if (found == place.folder->names.end()) return IOStatus::PathNotFound(path);
    node = found->second;
  }
  *folder = std::make_unique<CutFolder>(*this, std::move(node), path);
  return IOStatus::OK();
}

IOStatus PowerCutFileSystem::DeleteFile(const std::string& path, const Options& options,
                                        Debug* debug) {
  MutexLock lock(mutex_);
  bool last = false;
  if (!begin(&last)) return off();
  Place place = place_of(path);
  change_names(place.folder, {0, place.name, "", nullptr});
  return last ? off() : FileSystemWrapper::DeleteFile(path, options, debug);
}

IOStatus PowerCutFileSystem::CreateDir(const std::string& path, const Options& options,
                                       Debug* debug) {
  MutexLock lock(mutex_);
  bool last = false;
  if (!begin(&last)) return off();
  Place place = place_of(path);
  auto node = std::make_shared<CutNode>();
  node->folder = true;
  change_names(place.folder, {0, "", place.name, std::move(node)});
  return last ? off() : FileSystemWrapper::CreateDir(path, options, debug);
}

IOStatus PowerCutFileSystem::CreateDirIfMissing(const std::string& path, const Options& options,
                                                Debug* debug) {
  MutexLock lock(mutex_);
  bool last = false;
  if (!begin(&last)) return off();
  Place place = place_of(path);
  if (!place.folder->names.contains(place.name)) {
    auto node = std::make_shared<CutNode>();
    node->folder = true;
    change_names(place.folder, {0, "", place.name, std::move(node)});
  }
  return last ? off() : FileSystemWrapper::CreateDirIfMissing(path, options, debug);
}

IOStatus PowerCutFileSystem::DeleteDir(const std::string& path, const Options& options,
                                       Debug* debug) {
  MutexLock lock(mutex_);
  bool last = false;
  if (!begin(&last)) return off();
  Place place = place_of(path);
  change_names(place.folder, {0, place.name, "", nullptr});
  return last ? off() : FileSystemWrapper::DeleteDir(path, options, debug);
}

// Within a folder one change, both names or neither; between two folders two.
IOStatus PowerCutFileSystem::RenameFile(const std::string& from, const std::string& to,
                                        const Options& options, Debug* debug) {
  MutexLock lock(mutex_);
  bool last = false;
  if (!begin(&last)) return off();
  Place old_place = place_of(from), place = place_of(to);
  const auto found = old_place.folder->names.find(old_place.name);
  if (found == old_place.folder->names.end()) return IOStatus::PathNotFound(from);
  std::shared_ptr<CutNode> node = found->second;
  if (old_place.folder == place.folder) {
    change_names(place.folder, {0, old_place.name, place.name, std::move(node)});
  } else {
    change_names(place.folder, {0, "", place.name, std::move(node)});
    change_names(old_place.folder, {0, old_place.name, "", nullptr});
  }
  return last ? off() : FileSystemWrapper::RenameFile(from, to, options, debug);
}

void let_many_stores_wait(int threads) {
  for (auto pool : {rocksdb::Env::Priority::HIGH, rocksdb::Env::Priority::LOW}) {
    rocksdb::Env::Default()->SetBackgroundThreads(threads, pool);
  }
}

void PowerCutFileSystem::make_after_state(uint64_t seed) {
  make_after_state(seed, static_cast<CutStyle>(seed % kCutStyles));
}

void PowerCutFileSystem::make_after_state(uint64_t seed, CutStyle style) {
  MutexLock lock(mutex_);
  EMBER_CHECK(cut_, "an after-state without a cut");
  write_after_state(*root_, options_.root, operations_, seed, style);
}

}  // namespace ember::testing
