// Errors are absl::Status values with a message that a user can act on: which file or domain, at
// which byte or record, what was expected, what to do. These make them, with {}-formatted text.
//
// Codes and what they mean here:
//   InvalidArgument     what came from outside is not what it should be: a damaged file, a value
//   NotFound            a file, domain, event or program that is not there
//   PermissionDenied    not root, not dom0
//   FailedPrecondition  the machine is not in the state needed: xentrace already running
//   Unimplemented       this Xen or this CPU does not have it
//   ResourceExhausted   disk or memory full
//   Internal            an accounting identity does not hold: a defect of Xenoscope
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace xenoscope {

#define XENOSCOPE_ERROR_MAKER(Name, Code)                                        \
  template <typename... Args>                                                    \
  absl::Status Name(fmt::format_string<Args...> format, Args&&... args) {        \
    return absl::Status(Code, fmt::format(format, std::forward<Args>(args)...)); \
  }
XENOSCOPE_ERROR_MAKER(InvalidError, absl::StatusCode::kInvalidArgument)
XENOSCOPE_ERROR_MAKER(NotFoundError, absl::StatusCode::kNotFound)
XENOSCOPE_ERROR_MAKER(PermissionError, absl::StatusCode::kPermissionDenied)
XENOSCOPE_ERROR_MAKER(PreconditionError, absl::StatusCode::kFailedPrecondition)
XENOSCOPE_ERROR_MAKER(UnimplementedError, absl::StatusCode::kUnimplemented)
XENOSCOPE_ERROR_MAKER(ExhaustedError, absl::StatusCode::kResourceExhausted)
XENOSCOPE_ERROR_MAKER(InternalError, absl::StatusCode::kInternal)
#undef XENOSCOPE_ERROR_MAKER

// Returns the error "WHAT: strerror(error)", with the code that fits the errno.
[[nodiscard]] absl::Status ErrnoStatus(int error, std::string_view what);

template <typename... Args>
[[nodiscard]] absl::Status ErrnoError(int error, fmt::format_string<Args...> format,
                                      Args&&... args) {
  return ErrnoStatus(error, fmt::format(format, std::forward<Args>(args)...));
}

// Returns the status's message as the standard library's type: Debian's Abseil has its own
// string_view.
[[nodiscard]] std::string_view Message(const absl::Status& status);

// Returns the same error with "WHERE: " before its message.
[[nodiscard]] absl::Status InContext(const absl::Status& status, std::string_view where);

}  // namespace xenoscope

// NOLINTBEGIN(bugprone-macro-parentheses): names and declarations take none
// Returns from the enclosing function when `expression` is an error.
#define XENOSCOPE_RETURN_IF_ERROR(expression)                               \
  do {                                                                      \
    if (absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#define XENOSCOPE_CONCAT_INNER(a, b) a##b
#define XENOSCOPE_CONCAT(a, b) XENOSCOPE_CONCAT_INNER(a, b)
// Declares or assigns `lhs` from a StatusOr, or returns its error.
#define XENOSCOPE_ASSIGN_OR_RETURN(lhs, expression) \
  XENOSCOPE_ASSIGN_OR_RETURN_INNER(XENOSCOPE_CONCAT(result_, __LINE__), lhs, expression)
#define XENOSCOPE_ASSIGN_OR_RETURN_INNER(result, lhs, expression) \
  auto result = (expression);                                     \
  if (!result.ok()) return std::move(result).status();            \
  lhs = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)
