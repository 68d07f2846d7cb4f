// Checkpoint: the files of an open database as they are at one moment, in another folder.
//
// Journey    an open store -> [checkpoint] -> snapshot
// Invariant  the copy opens as the database stood; tables and blobs are linked where the file
//            system can, else copied; everything is synced. None of it counts in the store's limit
// Threads    any; writers go on, but for the flush at the beginning
#pragma once

#include <string>

#include "base/result.h"

namespace rocksdb {
class DB;
}

namespace ember {

// Makes `target`, which is absent. Errors: kIo, kCapacity, kUnsupported.
Status checkpoint_database(rocksdb::DB& db, const std::string& target);

}  // namespace ember
