// Holder frames: what travels between a command and the process that holds its store.
//
// Journey    command line -> [holder_frames] -> the holder's own command; its output comes back
// Invariant  no body is longer than kMostFrameBytes; a greeting is laid out the same in every
//            version, so that another version is refused by its name
// Threads    any; pure
// Not here   sockets (holder_socket.h), who asks for what (holder_server.h, holder_client.h)
//
//   frame        bytes                       greeting        bytes
//     type         1   FrameType               magic "EMBH"    4
//     zero         3                           version         2   kHolderProtocolVersion
//     length       4   of the body             state           2   0: ready, 1: busy
//     body       length                        pid             4
//                                              length p        2
//   request      bytes                         program         p   its version
//     width        2   of the terminal
//     flags        2   bit 0: colour, 1: progress, 2: standard input is a terminal,
//                      3: standard output is one
//     folder     4 + n   where the command was called
//     store      4 + n   the path by which it came here
//     words        2   of the command line, the program's name left out
//     word       4 + n   each
//
//   out, err, in: bytes as they are; ask_in, in_end: empty; exit: the code, 4 bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ember {

inline constexpr uint32_t kHolderMagic = 0x48424d45;  // "EMBH"
inline constexpr uint16_t kHolderProtocolVersion = 2;
inline constexpr size_t kFrameHeadBytes = 8;
inline constexpr size_t kMostFrameBytes = 64 * 1024;  // of a body

enum class FrameType : uint8_t {
  kGreeting = 1,  // holder: first of all
  kRequest = 2,   // client: once
  kOut = 3,       // holder: for standard output
  kErr = 4,       // holder: for standard error
  kAskIn = 5,     // holder: the command reads standard input; answered by one kIn or kInEnd
  kIn = 6,        // client
  kInEnd = 7,     // client: standard input has ended
  kExit = 8,      // holder: last of all
};
std::string_view frame_type_name(FrameType type);

struct FrameHead {
  FrameType type = FrameType::kGreeting;
  uint32_t body_bytes = 0;
};
// `body`: at most kMostFrameBytes.
std::string encode_frame(FrameType type, std::string_view body);
// Errors: kCorruption (not kFrameHeadBytes, an unknown type, a body that is too long).
Result<FrameHead> decode_frame_head(std::string_view head);

struct HolderGreeting {
  uint16_t protocol = kHolderProtocolVersion;
  bool busy = false;  // it serves as many as it may; it hangs up
  uint32_t pid = 0;
  std::string program;  // "0.1.0"
};
std::string encode_greeting(const HolderGreeting& greeting);
// Of any version. Errors: kCorruption.
Result<HolderGreeting> decode_greeting(std::string_view body);

struct HolderRequest {
  std::vector<std::string> arguments;  // without the program's name
  std::string folder;
  std::string store;
  uint16_t width = 80;
  bool colour = false;
  bool progress = false;     // standard error is a terminal
  bool interactive = false;  // standard input is one
  bool on_terminal = false;  // standard output is one
};
// Errors: kCapacity when it does not fit a frame.
Result<std::string> encode_request(const HolderRequest& request);
// Errors: kCorruption.
Result<HolderRequest> decode_request(std::string_view body);

std::string encode_exit(int code);
// Errors: kCorruption.
Result<int> decode_exit(std::string_view body);

}  // namespace ember
