// Allocation counter: how often the program that links this allocates. Replaces operator new.
//
// Journey    none; for tests and benches of what must not allocate in steady state
// Threads    any; each thread can count its own alone
#pragma once

#include <cstdint>

namespace ember {

// Allocations of all threads since the program began.
uint64_t allocations_of_all_threads();
// Allocations of the calling thread since it began.
uint64_t allocations_of_this_thread();

}  // namespace ember
