// Peaks: what this machine can do at most, measured in the run that quotes a share of it.
#pragma once

#include <cstdint>

namespace ember {

// Bytes a second of a plain memcpy between buffers larger than the caches, one thread (read and
// written bytes are counted once).
double measure_memcpy_bytes_per_s();
// Bytes a second that one thread reads from a buffer larger than the caches.
double measure_read_bytes_per_s();
// Anonymous resident memory of this process now, in bytes.
uint64_t anonymous_rss_bytes();

}  // namespace ember
