// A profile as text, CSV and JSON: the output of `xenoscope report`.
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
#include "correlate/placing/placed_sample.h"
#include "correlate/placing/placer.h"
#include "correlate/profile.h"
#include "report/table/table.h"
#include "report/table/table_text.h"
#include "trace/names.h"

namespace xenoscope::report {

// The file of an address, and its source lines.
struct CodeLines {
  std::string path;            // file of the code; empty: not known
  std::string build_id;        // build-id of that file, hexadecimal; empty: not known
  std::vector<Frame> inlined;  // innermost first, the function itself last; empty: no lines
};

// A finished profile, with what its reports say about the recording.
struct ProfileReport {
  std::vector<correlate::Dimension> by;
  correlate::ProfileResult result;
  // The same samples by other columns, in the same pass, as a report by these would have them;
  // none: no such result.
  std::vector<correlate::Dimension> secondary_by;
  correlate::ProfileResult secondary;
  bool with_parts = false;                          // rows have their strata
  bool with_inlined = false;                        // stacks of `result` have inlined functions
  std::vector<correlate::WaitingSet> waiting_sets;  // indexed by Context::waiting
  correlate::PlacingCounts counts;
  std::vector<correlate::PlacingCheck> placing_checks;  // empty without a trace
  // Samples that counts.samples does not include.
  uint64_t lost_in_buffers = 0;       // buffer entries that Xen had no room for
  uint64_t damaged = 0;               // samples in damaged parts of the files
  uint64_t outside = 0;               // samples outside the selected range
  std::string event;                  // "cycles (clocked by hpet:500)"
  std::vector<std::string> changes;   // changes of domains during the recording, one sentence each
  std::vector<std::string> cautions;  // limits of these samples, one sentence each
  bool is_time = true;
  bool traced = true;
  TscRange sampled;
  Clock clock;
  trace::Vendor vendor = trace::Vendor::kUnknown;
  std::function<std::string(DomainId)> domain_name;  // returns "" for a domain without a name
  // Returns "bash (1234)"; called only where rows are by process.
  std::function<std::string(AddressSpaceId)> process_name;
  // Called only where rows are by stack.
  std::function<const Function&(FunctionId)> function_of;
  // Called only where rows are by line, or by stack and address.
  std::function<CodeLines(DomainId, Mode, AddressSpaceId, Address)> lines_of;
};

// Which rows are shown, in what order.
struct ProfileSelection {
  std::vector<DomainId> domains;  // empty: all; else the profile is by domain too
  std::string sort = "share";     // the key of a column
  size_t limit = 0;               // maximum of rows of each domain; 0: all
  double threshold = 0;           // minimum share, 0 to 1
};

// Parses names of dimensions that are separated by commas, as in --by. Errors (InvalidArgument): an
// unknown name; a name twice.
absl::StatusOr<std::vector<correlate::Dimension>> ParseDimensions(const std::string& names);
std::string_view ToString(correlate::Dimension dimension);
// The text of a column of exits: "guest", "VMEXIT_CPUID".
std::string ContextName(const ProfileReport& report, correlate::Context context);

// A phrase that follows a number of samples: "20 estimated within a drain interval".
std::string_view PlacementDescription(correlate::Placement placement);

// Whether rows can be sorted by this key: a column of `by`, or a figure.
bool IsSortKey(const std::vector<correlate::Dimension>& by, std::string_view key);

// "web", or "d1" for a domain without a name.
std::string DomainLabel(const ProfileReport& report, DomainId domain);
// "d1 web", or "d1" for a domain without a name.
std::string DomainTitle(DomainId domain, const std::string& name);

// The text of the row's dimension.
std::string DimensionText(const ProfileReport& report, const correlate::ProfileRow& row,
                          correlate::Dimension dimension);

// One row a line in the selection's order.
Table ProfileTable(const ProfileReport& report, const ProfileSelection& selection);

// The name of a frame's function in `report.result`; "name (inlined)" for an inlined one, as in
// perf.
std::string FrameName(const ProfileReport& report, const correlate::StackFrame& frame);

// The row's functions from the outermost to the innermost.
std::vector<std::string> StackNames(const ProfileReport& report, const correlate::ProfileRow& row);

// The selected rows, largest share first, up to the selection's limit.
std::vector<const correlate::ProfileRow*> SelectedRows(const ProfileReport& report,
                                                       const ProfileSelection& selection);

// Whether the row's domain is one of the selection's.
bool IsSelected(const ProfileSelection& selection, const correlate::ProfileRow& row);

std::string ProfileText(const ProfileReport& report, const ProfileSelection& selection,
                        const TextStyle& style);
std::string ProfileCsv(const ProfileReport& report, const ProfileSelection& selection);
nlohmann::ordered_json ProfileJson(const ProfileReport& report, const ProfileSelection& selection);

}  // namespace xenoscope::report
