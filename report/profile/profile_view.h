// A profile for people, as CSV and as JSON: what `xenoscope report` prints.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/address_space_id.h"
#include "base/resolver.h"
#include "base/tsc.h"
#include "correlate/placing.h"
#include "correlate/profile.h"
#include "report/table/table.h"
#include "report/table/table_text.h"
#include "trace/names.h"

namespace xenoscope::report {

// Where code is: the file that it is of, and lines.
struct CodeLines {
  std::string path;            // of the file; empty: not known
  std::string build_id;        // of it, hexadecimal; empty: not known
  std::vector<Frame> inlined;  // innermost first, the function itself last; empty: no lines
};

// A finished profile and what is known around it.
struct ProfileReport {
  std::vector<correlate::Dimension> by;
  correlate::ProfileResult result;
  // The same samples by other columns, in the same pass, as a report by these would have them;
  // none: no such result.
  std::vector<correlate::Dimension> secondary_by;
  correlate::ProfileResult secondary;
  bool with_parts = false;                          // rows say which strata they are of
  bool with_inlined = false;                        // stacks of `result` have inlined functions
  std::vector<correlate::WaitingSet> waiting_sets;  // by Context::waiting
  correlate::PlacingCounts counts;
  std::vector<correlate::PlacingCheck> placing_checks;  // empty without a trace
  // Beside counts.samples: what never became a sample.
  uint64_t lost_in_buffers = 0;       // buffer entries that Xen had no room for
  uint64_t damaged = 0;               // samples in damaged parts of the files
  uint64_t outside = 0;               // samples outside the range that was asked for
  std::string event;                  // "cycles (clocked by hpet:500)"
  std::vector<std::string> changes;   // what happened to domains, a sentence each
  std::vector<std::string> cautions;  // how far these samples may be trusted, a sentence each
  bool is_time = true;
  bool traced = true;
  TscRange sampled;
  Clock clock;
  trace::Vendor vendor = trace::Vendor::kUnknown;
  std::function<std::string(DomainId)> domain_name;  // empty: it has none
  // "bash (1234)"; asked only where rows are by process.
  std::function<std::string(AddressSpaceId)> process_name;
  // Asked only where rows are by stack.
  std::function<const Function&(FunctionId)> function_of;
  // Asked only where rows are by line, or by stack and address.
  std::function<CodeLines(DomainId, Mode, AddressSpaceId, Address)> lines_of;
};

// Which rows are shown, in what order.
struct ProfileSelection {
  std::vector<DomainId> domains;  // empty: all; else the profile is by domain too
  std::string sort = "share";     // the key of a column
  size_t limit = 0;               // rows of each domain; 0: all
  double threshold = 0;           // least share
};

// The dimensions of these names, divided by commas, as --by has them. Errors (InvalidArgument): no
// such name; one twice.
absl::StatusOr<std::vector<correlate::Dimension>> ParseDimensions(const std::string& names);
std::string_view ToString(correlate::Dimension dimension);
// "guest", "VMEXIT_CPUID", as in a column of exits.
std::string ContextName(const ProfileReport& report, correlate::Context context);

// "within their bracket", as in "20 samples within their bracket".
std::string_view PlacementDescription(correlate::Placement placement);

// Whether rows can be sorted by it: a column of `by`, or a figure.
bool IsSortKey(const std::vector<correlate::Dimension>& by, std::string_view key);

// "web", or "d1" of a domain without a name.
std::string DomainLabel(const ProfileReport& report, DomainId domain);
// "d1 web", or "d1" of a domain without a name.
std::string DomainTitle(DomainId domain, const std::string& name);

// The words of the row's dimension.
std::string DimensionText(const ProfileReport& report, const correlate::ProfileRow& row,
                          correlate::Dimension dimension);

// One row a line, for people, in the selection's order.
Table ProfileTable(const ProfileReport& report, const ProfileSelection& selection);

// The name of the function of a frame in `report.result`; of an inlined one as perf has it:
// "name (inlined)".
std::string FrameName(const ProfileReport& report, const correlate::StackFrame& frame);

// The row's functions from the outermost to the innermost.
std::vector<std::string> StackNames(const ProfileReport& report, const correlate::ProfileRow& row);

// The rows that the selection leaves, those of the largest share first, but at most its limit.
std::vector<const correlate::ProfileRow*> SelectedRows(const ProfileReport& report,
                                                       const ProfileSelection& selection);

// Whether the row's domain is one of the selection's.
bool IsSelected(const ProfileSelection& selection, const correlate::ProfileRow& row);

std::string ProfileText(const ProfileReport& report, const ProfileSelection& selection,
                        const TextStyle& style);
std::string ProfileCsv(const ProfileReport& report, const ProfileSelection& selection);
nlohmann::ordered_json ProfileJson(const ProfileReport& report, const ProfileSelection& selection);

}  // namespace xenoscope::report
