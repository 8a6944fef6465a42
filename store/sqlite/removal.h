// Takes slices, or what is known of a domain, out of a store's file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/sqlite/connection.h"

namespace xenoscope::store {

// Both are for use in a transaction, and remove keys that nothing refers to any more. O(store).

// Removes slices by their numbers in the file.
absl::Status RemoveSlices(const Connection& connection, const std::vector<int64_t>& slices);

// Replaces the names of a domain, and of its images and functions, in these slices; Xen's own
// functions keep theirs. Store::EraseDomain says more. Returns the number of slices that had it.
absl::StatusOr<uint64_t> EraseDomainNames(const Connection& connection,
                                          const std::vector<int64_t>& slices,
                                          const std::string& domain);

}  // namespace xenoscope::store
