// Errors as values. Wrong input, a missing file or an impossible request is a Result<T>; a bug of
// ours is a TUTTI_CHECK (check.h). No exception leaves a room.
//
// Messages: lower case, no full stop, what was got and what would have been accepted.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace tutti {

enum class ErrorCode {
  kInvalidArgument,    // the caller's input is wrong
  kInfeasible,         // the input is well-formed and the answer is no
  kNotFound,           // a named thing does not exist
  kIo,                 // the operating system refused: path, permission, full disk
  kCorrupt,            // a file is truncated, damaged or of an unknown version
  kResourceExhausted,  // needs more memory, disk or number range than there is
  kCancelled,          // interrupted by the user
  kPeerFailed,         // another process of the run ended or stopped answering
};

struct Error {
  ErrorCode code;
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;

[[nodiscard]] inline tl::unexpected<Error> MakeError(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}
[[nodiscard]] inline tl::unexpected<Error> InvalidArgument(std::string message) {
  return MakeError(ErrorCode::kInvalidArgument, std::move(message));
}

// The same error with "context: " before its message, for callers that know where.
[[nodiscard]] inline tl::unexpected<Error> Within(const std::string& context, const Error& error) {
  return MakeError(error.code, context + ": " + error.message);
}

}  // namespace tutti
