// What SQL has of a slice: sums by names, over all vCPUs of a domain, without those that only say
// how uncertain something is. Each table of them is a Nested column of ClickHouse.
#pragma once

#include <string>

#include "store/clickhouse/row_binary.h"
#include "store/slice.h"

namespace xenoscope::store {

// Returns the columns with their types, for CREATE TABLE: "stratum Nested(domain String, ...),
// ...".
std::string SqlListTypes();
// Returns their names, for INSERT: "strata.domain, ...".
std::string SqlListColumns();
// Appends their values. O(sums log(sums)).
void AppendSqlLists(const SliceSums& sums, const Dictionary& dictionary, RowBinaryWriter& out);

}  // namespace xenoscope::store
