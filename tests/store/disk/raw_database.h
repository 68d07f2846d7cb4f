// A database of the store, opened as RocksDB's own tools would: behind the store's back, so that
// RocksDB's checksums are right and only ours can tell.
#pragma once

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ember {

class RawDatabase {
 public:
  explicit RawDatabase(const std::string& path) {
    rocksdb::DBOptions options;
    std::vector<std::string> names;
    EXPECT_TRUE(rocksdb::DB::ListColumnFamilies(options, path, &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names) {
      rocksdb::ColumnFamilyOptions family;
      family.enable_blob_files = name == "data";
      families.emplace_back(name, family);
    }
    rocksdb::DB* db = nullptr;
    const rocksdb::Status status = rocksdb::DB::Open(options, path, families, &handles_, &db);
    EXPECT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
    for (size_t i = 0; i < names.size(); ++i) by_name_[names[i]] = handles_[i];
  }
  ~RawDatabase() {
    for (auto& [name, handle] : by_name_) {
      EXPECT_TRUE(db_->Flush(rocksdb::FlushOptions(), handle).ok());
      db_->DestroyColumnFamilyHandle(handle);
    }
    EXPECT_TRUE(db_->Close().ok());
  }

  // Calls `change` on the value of the first key that holds `part`; false from it: deletes the key.
  void edit(const std::string& family, std::string_view part,
            const std::function<bool(std::string&)>& change) {
    rocksdb::ColumnFamilyHandle* handle = by_name_.at(family);
    std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), handle));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      if (it->key().ToStringView().find(part) == std::string_view::npos) continue;
      const std::string key = it->key().ToString();
      std::string value = it->value().ToString();
      const bool keep = change(value);
      const rocksdb::Status status =
          keep ? db_->Put(rocksdb::WriteOptions(), handle, key, value)
               : db_->Delete(rocksdb::WriteOptions(), handle, key);
      EXPECT_TRUE(status.ok()) << status.ToString();
      return;
    }
    FAIL() << "no such key";
  }
  void put(const std::string& family, const std::string& key, const std::string& value) {
    const rocksdb::Status status =
        db_->Put(rocksdb::WriteOptions(), by_name_.at(family), key, value);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::map<std::string, rocksdb::ColumnFamilyHandle*> by_name_;
};

// For RawDatabase::edit.
inline bool flip_middle(std::string& value) {
  value[value.size() / 2] = static_cast<char>(value[value.size() / 2] ^ 8);
  return true;
}

}  // namespace ember
