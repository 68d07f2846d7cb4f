// Peaks: what this machine can do at most, measured in the run that quotes a share of it.
#pragma once

#include <cstdint>

namespace ember {

// Bytes a second that so many threads read from buffers larger than the caches.
double measure_read_bytes_per_s(int threads);
// Anonymous resident memory of this process now, in bytes.
uint64_t anonymous_rss_bytes();

}  // namespace ember
