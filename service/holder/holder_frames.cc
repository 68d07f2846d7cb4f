// Frames of the holder's socket: to bytes and, with every length doubted, from bytes.
#include "service/holder/holder_frames.h"

#include <utility>

#include "base/bytes.h"
#include "base/framed_text.h"

namespace ember {
namespace {

constexpr size_t kMostProgramBytes = 256;
constexpr uint16_t kColour = 1;
constexpr uint16_t kProgress = 2;
constexpr uint16_t kInteractive = 4;
constexpr uint16_t kOnTerminal = 8;
constexpr uint16_t kKnownFlags = kColour | kProgress | kInteractive | kOnTerminal;

Error damaged(std::string_view what) {
  return {ErrorCode::kCorruption, "holder's socket: found a damaged " + std::string(what)};
}

}  // namespace

std::string_view frame_type_name(FrameType type) {
  switch (type) {
    case FrameType::kGreeting:
      return "greeting";
    case FrameType::kRequest:
      return "request";
    case FrameType::kOut:
      return "out";
    case FrameType::kErr:
      return "err";
    case FrameType::kAskIn:
      return "ask_in";
    case FrameType::kIn:
      return "in";
    case FrameType::kInEnd:
      return "in_end";
    case FrameType::kExit:
      return "exit";
  }
  return "unknown";
}

std::string encode_frame(FrameType type, std::string_view body) {
  EMBER_CHECK(body.size() <= kMostFrameBytes, "a body fits its frame");
  std::string frame;
  frame.reserve(kFrameHeadBytes + body.size());
  frame += static_cast<char>(type);
  frame.append(3, '\0');
  append_text(frame, body);
  return frame;
}

Result<FrameHead> decode_frame_head(std::string_view head) {
  ByteReader reader(head);
  const auto type = reader.read<uint8_t>();
  const std::string_view zero = reader.read_bytes(3);
  const auto bytes = reader.read<uint32_t>();
  if (!reader.finished() || zero != std::string_view("\0\0\0", 3) ||
      type < static_cast<uint8_t>(FrameType::kGreeting) ||
      type > static_cast<uint8_t>(FrameType::kExit)) {
    return damaged("frame");
  }
  if (bytes > kMostFrameBytes) {
    return Error{ErrorCode::kCorruption, "holder's socket: found a frame of " +
                                             std::to_string(bytes) + " bytes, expected at most " +
                                             std::to_string(kMostFrameBytes)};
  }
  return FrameHead{static_cast<FrameType>(type), bytes};
}

std::string encode_greeting(const HolderGreeting& greeting) {
  const std::string_view program = std::string_view(greeting.program).substr(0, kMostProgramBytes);
  std::string body;
  append_value(body, kHolderMagic);
  append_value(body, greeting.protocol);
  append_value(body, static_cast<uint16_t>(greeting.busy ? 1 : 0));
  append_value(body, greeting.pid);
  append_value(body, static_cast<uint16_t>(program.size()));
  body += program;
  return body;
}

// What stands behind the program's version is a later version's affair.
Result<HolderGreeting> decode_greeting(std::string_view body) {
  ByteReader reader(body);
  const auto magic = reader.read<uint32_t>();
  HolderGreeting greeting;
  greeting.protocol = reader.read<uint16_t>();
  greeting.busy = reader.read<uint16_t>() != 0;
  greeting.pid = reader.read<uint32_t>();
  const auto size = reader.read<uint16_t>();
  greeting.program = std::string(reader.read_bytes(size));
  if (reader.failed() || magic != kHolderMagic || size > kMostProgramBytes) {
    return damaged("greeting");
  }
  return greeting;
}

Result<std::string> encode_request(const HolderRequest& request) {
  std::string body;
  append_value(body, request.width);
  append_value(body, static_cast<uint16_t>((request.colour ? kColour : 0) |
                                           (request.progress ? kProgress : 0) |
                                           (request.interactive ? kInteractive : 0) |
                                           (request.on_terminal ? kOnTerminal : 0)));
  append_text(body, request.folder);
  append_text(body, request.store);
  append_value(body, static_cast<uint16_t>(request.arguments.size()));
  for (const std::string& word : request.arguments) append_text(body, word);
  if (body.size() > kMostFrameBytes || request.arguments.size() > UINT16_MAX) {
    return Error{ErrorCode::kCapacity,
                 "the command line comes to " + std::to_string(body.size()) +
                     " bytes; the process that holds the store takes at most " +
                     std::to_string(kMostFrameBytes)};
  }
  return body;
}

Result<HolderRequest> decode_request(std::string_view body) {
  ByteReader reader(body);
  HolderRequest request;
  request.width = reader.read<uint16_t>();
  const auto flags = reader.read<uint16_t>();
  request.colour = (flags & kColour) != 0;
  request.progress = (flags & kProgress) != 0;
  request.interactive = (flags & kInteractive) != 0;
  request.on_terminal = (flags & kOnTerminal) != 0;
  request.folder = read_text(reader);
  request.store = read_text(reader);
  const auto words = reader.read<uint16_t>();
  for (uint16_t i = 0; i < words && !reader.failed(); ++i) {
    request.arguments.push_back(read_text(reader));
  }
  if (!reader.finished() || (flags & ~kKnownFlags) != 0) return damaged("request");
  return request;
}

std::string encode_exit(int code) {
  std::string body;
  append_value(body, static_cast<int32_t>(code));
  return body;
}

Result<int> decode_exit(std::string_view body) {
  ByteReader reader(body);
  const auto code = reader.read<int32_t>();
  if (!reader.finished()) return damaged("exit code");
  return static_cast<int>(code);
}

}  // namespace ember
