// Joins slices in ClickHouse.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "store/clickhouse/http_client.h"
#include "store/store.h"

namespace xenoscope::store {

// Puts joined slices into the place of the selected ones that begin in the same interval. Adds the
// numbers of slices to `joined`. The rows of those that were joined are still there, but no longer
// count (store/clickhouse/replacement.h). Errors: those of HttpClient::Run; InvalidArgument as
// CheckSlice. O(the slices' sums), part by part.
absl::Status JoinSlices(HttpClient& client, const Selection& selection, int64_t interval_ns,
                        Store::Joined& joined);

}  // namespace xenoscope::store
