// The kernel's events that a user asks for beside those of threads (record --guest-events). They
// reach a guest's agent from another domain, and become paths of tracefs there.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace xenoscope::sampler {

inline constexpr size_t kMaxListedEvents = 16;      // entries of a list
inline constexpr size_t kMaxListedEventBytes = 64;  // of an entry

// Checks that each entry is SYSTEM, SYSTEM:* or SYSTEM:EVENT, where both names have letters, digits
// and underscores only. Errors (InvalidArgument): one is something else, or there are too many.
absl::Status CheckEventList(const std::vector<std::string>& events);

// Returns the path of a valid entry below events/: "raw_syscalls", "sched/sched_stat_runtime".
std::string EventDirectory(std::string_view event);

}  // namespace xenoscope::sampler
