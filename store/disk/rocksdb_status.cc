// RocksDB status: which of our codes each of RocksDB's means.
#include "store/disk/rocksdb_status.h"

#include <string>

#include "base/check.h"

namespace ember {
namespace {

ErrorCode code_of(const rocksdb::Status& status) {
  // Before the plain code: "no space" is an IO error with a subcode, whoever refused it.
  if (status.IsNoSpace() || status.subcode() == rocksdb::Status::kSpaceLimit) {
    return ErrorCode::kCapacity;
  }
  switch (status.code()) {
    case rocksdb::Status::kCorruption: return ErrorCode::kCorruption;
    // A key that our own metadata promises and that is gone is damage.
    case rocksdb::Status::kNotFound: return ErrorCode::kCorruption;
    case rocksdb::Status::kIncomplete:
    case rocksdb::Status::kBusy:
    case rocksdb::Status::kTryAgain: return ErrorCode::kBusy;
    case rocksdb::Status::kNotSupported: return ErrorCode::kUnsupported;
    case rocksdb::Status::kShutdownInProgress:
    case rocksdb::Status::kAborted: return ErrorCode::kCancelled;
    // A damaged file's numbers reach RocksDB's own checks of arguments.
    case rocksdb::Status::kInvalidArgument: return ErrorCode::kCorruption;
    default: return ErrorCode::kIo;
  }
}

}  // namespace

Error rocksdb_error(const rocksdb::Status& status, std::string_view what) {
  EMBER_CHECK(!status.ok(), "the error of a good RocksDB status");
  return {code_of(status), std::string(what) + ": " + status.ToString()};
}

Status rocksdb_result(const rocksdb::Status& status, std::string_view what) {
  if (status.ok()) return {};
  return rocksdb_error(status, what);
}

}  // namespace ember
