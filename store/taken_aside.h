// Taken aside: files of a database that a repair found broken, and moved out of the way as they
// were.
//
// Journey    repair -> [taken_aside] -> quarantine list, clear; a person
// Owns       <store>/quarantine/taken-aside/<time>/<database>/...
// Invariant  nothing reads them but who asks; they count on no share of the store
// Threads    any
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace ember {

struct TakenAside {
  std::string file;  // below taken_aside_folder: "20261201T003000Z/blocks/000012.sst"
  uint64_t bytes = 0;
  int64_t unix_us = 0;  // when it was last written
};

std::string taken_aside_folder(const std::string& store);
// In the order of their names. Cost: a look at each file's length.
std::vector<TakenAside> list_taken_aside(const std::string& store);
// Removes one file that the list names, and the folders that are empty then. False: there is none.
// Errors: kIo.
Result<bool> remove_taken_aside(const std::string& store, const std::string& file);

}  // namespace ember
