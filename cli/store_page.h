// `report --from-store --format html`: the page of a store's profile. A store has neither call
// chains, nor lines, nor times within a slice: each function is a frame of its own.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/store_source.h"
#include "correlate/row_key.h"
#include "report/profile/profile_format.h"
#include "report/profile/row_filter.h"

namespace xenoscope::cli {

// Returns the page of the selected slices; its report is by these columns. `domains` are names of
// domains that the report has; empty: all. Errors: as ProfileOfStore and ChooseStoredDomains;
// Unimplemented where the command was built without the page.
absl::StatusOr<std::string> StorePage(const StoreOptions& store,
                                      const std::vector<correlate::Dimension>& by,
                                      const std::vector<report::RowFilter>& filters,
                                      const std::vector<std::string>& domains,
                                      report::ProfileFormatOptions write);

}  // namespace xenoscope::cli
