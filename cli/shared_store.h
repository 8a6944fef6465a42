// What dom0 shares with this guest (record --share), as its agent keeps it: a store with one slice
// for each recording.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "base/bytes.h"

namespace xenoscope::cli {

// The file of the store, unless the agent was started with another one.
inline constexpr char kSharedStore[] = "/var/lib/xenoscope/shared.db";

// What the store has at most: beyond that the oldest slices are removed.
struct SharedLimits {
  uint64_t slices = 10'000;
  uint64_t bytes = uint64_t{64} << 20;  // of the file
};

// Adds a slice to the store in the file, which is made with its directory if it is not there. The
// bytes may be from anywhere. Errors: those of store::FromBytes and of the store. O(store).
absl::Status KeepShared(const std::string& file, Bytes bytes, const SharedLimits& limits = {});

}  // namespace xenoscope::cli
