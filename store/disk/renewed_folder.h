// Renewed folder: a database that is made anew beside the old one, and takes its place when it is
// whole; the old one is taken aside, where nobody looks for it but who asks.
//
// Journey    none; a repair builds in <store>/<name>.new
// Owns       <store>/<name>.new (unfinished), <store>/<name>.ready (whole, not in its place yet),
//            <store>/quarantine/taken-aside/<time>/
// Invariant  at each moment the old database is whole, or a whole new one is there; a process that
//            is killed in between leaves what the next one goes on from; nothing is deleted but
//            what was never finished
// Threads    one, which holds the store
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace ember {

class RenewedFolder {
 public:
  RenewedFolder(std::string store, std::string name)
      : store_(std::move(store)), name_(std::move(name)) {}

  // Where it is built; empty now. Errors: kIo, kCapacity.
  Result<std::string> begin();
  // What was built is whole and durable: it stands in the old one's place, and that is in `aside`.
  Status put_in_place(const std::string& aside);
  // What an earlier process had ready is put in its place. False: there was nothing.
  Result<bool> finish(const std::string& aside);

 private:
  std::string path(const std::string& ending) const { return store_ + "/" + name_ + ending; }

  const std::string store_;
  const std::string name_;
};

// <store>/quarantine/taken-aside/<time>, which no earlier repair has used; made when something is
// put there.
std::string new_aside_folder(const std::string& store, int64_t unix_us);
// Makes the folder and those above it, 0700.
Status make_aside_folder(const std::string& store, const std::string& aside);

}  // namespace ember
