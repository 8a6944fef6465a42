// Takes what is known of a domain out of slices in ClickHouse.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "store/clickhouse/http_client.h"
#include "store/store.h"

namespace xenoscope::store {

// Puts slices without the names of the domain into the place of the selected ones that have them,
// as Store::EraseDomain says. Rows of those are still there, but no longer count
// (store/clickhouse/replacement.h). Returns the number of these slices. Errors: those of
// HttpClient::Run; InvalidArgument where a slice is damaged. O(the slices' sums), part by part.
absl::StatusOr<uint64_t> EraseDomainNames(HttpClient& client, const Selection& selection,
                                          const std::string& domain);

}  // namespace xenoscope::store
