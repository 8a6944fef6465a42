// Reads slices from a ClickHouse server, part by part.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/clickhouse/http_client.h"
#include "store/clickhouse/read_plan.h"
#include "store/clickhouse/stored_slices.h"

namespace xenoscope::store {

// Reads an answer whose rows are StoredSize. Errors (InvalidArgument): it has another form.
absl::StatusOr<std::vector<StoredSize>> ParseSizes(const std::string& answer,
                                                   const HttpClient& client);

// Returns what the selected slices need, host by host and day by day. Errors: those of
// HttpClient::Run.
absl::StatusOr<std::vector<StoredSize>> DailySizes(HttpClient& client, const Selection& selection);

// Asks for the slices of each range, one after the other, and visits the answers. The server
// prepares the next answer meanwhile. Errors: those of HttpClient::Run and of `visit`.
absl::Status ForEachPart(
    const HttpClient& client, const std::vector<Range>& parts,
    const std::function<absl::Status(const Range&, const StoredSlices&)>& visit);

}  // namespace xenoscope::store
