// The functions of a kernel that a user asks to be traced (record --guest-functions): patterns as
// ftrace's set_ftrace_filter takes them. They reach a guest's agent from another domain, and are
// written into a file of tracefs there.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace xenoscope::sampler {

// Limits of a list, and of a pattern in bytes.
inline constexpr size_t kMaxFunctionPatterns = 16;
inline constexpr size_t kMaxFunctionPatternBytes = 128;

// Checks that the list has nothing but names of functions, in which * stands for any characters:
// letters, digits, '_', '.' and '*', and not '*' alone, as a kernel that traces all functions
// hardly does anything else. Errors (InvalidArgument): what is wrong with which pattern.
absl::Status CheckFunctionPatterns(const std::vector<std::string>& patterns);

}  // namespace xenoscope::sampler
