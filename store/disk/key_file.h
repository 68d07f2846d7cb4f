// Key file: the master key of an encrypted store, one line of text that its owner keeps elsewhere.
//
// Journey    none; opening an encrypted store -> [key_file]
// Owns       the form of the file: "emberkv-master-key-1 ", 64 hexadecimal digits, a line feed
// Invariant  a file that others could read is refused; one that is there is never written over
// Threads    open once
#pragma once

#include <string>

#include "base/result.h"
#include "store/disk/seal.h"

namespace ember {

// Errors: kInvalidArgument naming the file: missing, of another form, or open to other users.
Result<SecretKey> load_key_file(const std::string& path);
// Makes the file with a random key, and the folders above it. Errors: kIo, kCapacity.
Status make_key_file(const std::string& path);
// kInvalidArgument when `path` lies in the folder `store`, whose thief would have the key too.
Status refuse_key_inside(const std::string& path, const std::string& store);

}  // namespace ember
