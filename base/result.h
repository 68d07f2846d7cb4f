// Result: a value, or the reason why there is none.
//
// Journey    none; every call that can fail in a good program returns one
// Invariant  an error's message names the file or field, what was found and what was expected
// Not here   misuse of an interface, which aborts (base/check.h)
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace ember {

enum class ErrorCode {
  kInvalidArgument,  // the caller's input is wrong: a flag, a file of the user's, a config
  kCorruption,       // stored bytes are not what was written
  kIo,               // the operating system refused
  kCapacity,         // a stated limit is reached
  kBusy,             // someone else holds it, or try again
  kUnsupported,      // well formed, but not something this version does
  kDevice,           // the compute device failed
  kCancelled,        // asked to stop
};

// The code's name in lower case, for messages and JSON: "corruption".
std::string_view error_code_name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string message;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  Result(ErrorCode code, std::string message) : Result(Error{code, std::move(message)}) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    EMBER_CHECK(ok(), "value of a failed Result");
    return std::get<0>(state_);
  }
  const T& value() const& {
    EMBER_CHECK(ok(), "value of a failed Result");
    return std::get<0>(state_);
  }
  // By value: a reference into a temporary would not outlive a range-for over it.
  T value() && {
    EMBER_CHECK(ok(), "value of a failed Result");
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    EMBER_CHECK(!ok(), "error of a good Result");
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

// Result without a value. `Status{}` is success.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : failed_(true), error_(std::move(error)) {}
  Result(ErrorCode code, std::string message) : Result(Error{code, std::move(message)}) {}

  bool ok() const { return !failed_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    EMBER_CHECK(failed_, "error of a good Status");
    return error_;
  }

 private:
  bool failed_ = false;
  Error error_;
};
using Status = Result<void>;

}  // namespace ember

// Returns the error of a Status or Result expression to the caller, or goes on.
#define EMBER_TRY(expression)                                    \
  do {                                                           \
    auto ember_try_status = (expression);                        \
    if (!ember_try_status.ok()) return ember_try_status.error(); \
  } while (false)

#define EMBER_CONCAT_INNER(a, b) a##b
#define EMBER_CONCAT(a, b) EMBER_CONCAT_INNER(a, b)

// EMBER_ASSIGN(auto x, f()): declares x with the value of f(), or returns f()'s error.
#define EMBER_ASSIGN(declaration, expression)                \
  auto EMBER_CONCAT(ember_result_, __LINE__) = (expression); \
  if (!EMBER_CONCAT(ember_result_, __LINE__).ok())           \
    return EMBER_CONCAT(ember_result_, __LINE__).error();    \
  declaration = std::move(EMBER_CONCAT(ember_result_, __LINE__)).value()
