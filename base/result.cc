// The names of error codes.
#include "base/result.h"

namespace ember {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kCorruption:
      return "corruption";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kCapacity:
      return "capacity";
    case ErrorCode::kBusy:
      return "busy";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kDevice:
      return "device";
    case ErrorCode::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

}  // namespace ember
