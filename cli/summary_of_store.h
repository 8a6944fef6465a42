// What `summary --from-store` prints: what the traces of many hosts and times show.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/store_source.h"
#include "report/table/table_text.h"

namespace xenoscope::cli {

struct StoreSummaryOptions {
  StoreOptions store;
  std::string format;                 // text, json or csv
  std::vector<std::string> sections;  // keys of store::TraceTotals::Groups; empty: all
  std::vector<std::string> domains;   // empty: all
  bool by_vcpu = false;
  bool details = false;  // all rows, also in text
};

// Throws a usage error for a section that stores do not have.
void CheckStoreSections(const std::vector<std::string>& sections);

// Returns the summary as text. Errors: as those of SummariseStore.
absl::StatusOr<std::string> StoreSummaryText(const StoreSummaryOptions& options,
                                             const report::TextStyle& style);

// Writes the summary to stdout. Errors: those of TraceTotalsOfStore; NotFound if no slice has a
// trace, or the domain.
absl::Status SummariseStore(const StoreSummaryOptions& options);

}  // namespace xenoscope::cli
