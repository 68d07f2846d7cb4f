// Stop asked: whether whoever waits for something long has gone, asked by the one who does it.
//
// Journey    a signal, a client that hung up -> [stop_asked] -> walks, verifying, downloads
// Threads    as whoever made it says
#pragma once

#include <functional>

namespace ember {

using StopAsked = std::function<bool()>;  // empty: never

inline bool is_stopped(const StopAsked& stopped) { return stopped && stopped(); }

}  // namespace ember
