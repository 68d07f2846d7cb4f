// RocksDB log check: whether a log or manifest is whole, or torn by a power cut, or changed inside.
//
// Journey    none; torn_logs asks before a database is opened, `verify` asks of manifests
// Invariant  a file that a crash or power cut left is whole or torn, never damaged; one with a byte
//            changed in what was synced is damaged
// Threads    any; reads only
// Source     RocksDB wiki, "Write Ahead Log File Format": blocks of 32 KiB of records
//            {masked crc32c 4, length 2, type 1, payload}
//
// RocksDB itself takes a record whose length reaches past the end of the file for one that a crash
// cut short, and drops it in silence. A flipped byte of that length looks the same to it. And where
// a power cut lost a sector of the last write but kept a later one, it refuses the whole database.
// Here both are told apart by what only one of them can leave. Damage: a right record behind the
// bad one, which was written later and so synced after it. A cut: a sector that was never written,
// all zero, in the bad record. In a log one record at a time waits for its sync; in a manifest a
// few.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ember {

enum class LogKind : uint8_t { kLog, kManifest };

struct LogVerdict {
  enum State : uint8_t {
    kWhole,    // every record is right; the last one may be cut short, as a kill leaves it
    kTorn,     // behind `synced_bytes` lies what a power cut left of a write that never ended
    kDamaged,  // a byte was changed
  } state = kWhole;
  size_t synced_bytes = 0;
};

LogVerdict check_log(std::string_view bytes, LogKind kind);

// The payload of each whole write, in order. Damaged ones are passed over: the walk goes on with
// the next right one behind them.
void each_log_record(std::string_view bytes,
                     const std::function<void(std::string_view record)>& visit);

// A manifest by its name, else a log.
LogKind log_kind(std::string_view name);
// Whole or torn. False also for a file that cannot be read.
bool log_file_is_whole(const std::string& path);

}  // namespace ember
