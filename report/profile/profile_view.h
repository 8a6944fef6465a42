// A profile as text, CSV and JSON: the output of `xenoscope report`.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/address_space_id.h"
#include "base/resolver.h"
#include "base/tsc.h"
#include "correlate/placing/placed_sample.h"
#include "correlate/profile.h"
#include "findings/finding.h"
#include "profile/code_lines.h"
#include "profile/profile_results.h"
#include "report/profile/dimension_names.h"
#include "report/table/table.h"
#include "report/table/table_text.h"
#include "trace/names.h"

namespace xenoscope::report {

// An instant of the host's clock and the time of day then.
struct TimeOfDay {
  Tsc at;
  uint64_t utc_ns = 0;    // since 1970
  uint64_t error_ns = 0;  // by how much it may be wrong
};

// What rows have together.
struct RowTotals {
  double samples = 0;
  double share = 0;
  double cycles = 0;
};

// A finished profile, with what its reports say about the recording.
struct ProfileReport : profile::SampleSet, profile::ProfileResults {
  std::vector<correlate::Dimension> by;  // columns of `result`
  std::string input;                     // path of the recording or trace
  std::string host;                      // its name, where rows do not say theirs
  // Findings, most important first; none in reports that do not look for them.
  std::vector<findings::Finding> findings;
  std::optional<RowTotals> chosen;   // of the rows that filters have left, if there are any filters
  std::vector<std::string> changes;  // changes of domains during the recording, one sentence each
  std::optional<TimeOfDay> wall_clock;               // not set: not known
  std::function<std::string(DomainId)> domain_name;  // returns "" for a domain without a name
  // Whether domains have the numbers that Xen gave them. In a profile of several hosts they are
  // known by name alone.
  bool has_domain_numbers = true;
  // Returns the name of an exit's reason; empty: the vendor's names.
  std::function<std::string(uint32_t)> exit_name;
  // Returns "bash (1234)"; called only if rows are by process.
  std::function<std::string(AddressSpaceId)> process_name;
  // Called only if rows are by stack.
  std::function<const Function&(FunctionId)> function_of;
  // Called only if rows are by line, or by stack and address.
  std::function<profile::CodeLines(DomainId, Mode, AddressSpaceId, Address)> lines_of;
};

// The number of domains that text shows with their rows; the others have one line with their sum.
inline constexpr size_t kMostDomains = 20;

// The rows that are shown, and their order.
struct ProfileSelection {
  std::vector<DomainId> domains;  // empty: all; else the profile is by domain too
  std::string sort = "share";     // the key of a column
  // Maximum of rows of each domain; 0: all. If it is not 0 and `domains` is empty, text shows
  // kMostDomains domains.
  size_t limit = 0;
  double threshold = 0;  // minimum share, 0 to 1
};

// Returns the text of a column of exits: "guest", "VMEXIT_CPUID".
std::string ContextName(const ProfileReport& report, correlate::Context context);

// Returns the time of day at the instant in ns since 1970, if it is known.
std::optional<uint64_t> UtcOf(const ProfileReport& report, Tsc at);

// Returns a phrase that follows a number of samples: "20 estimated within a drain interval".
std::string_view PlacementDescription(correlate::Placement placement);
// Returns how far samples that the sampling clock placed may be from their instants, as text that
// follows their description: ", ±390 ns (95 %)". Of the domain, or, where it is null, of all.
// Empty if it is not known, as in a store.
std::string ClockErrorText(const ProfileReport& report, std::optional<DomainId> domain);

// Returns the keys of the columns by which the rows of any profile can be sorted.
std::vector<std::string> SortKeys();

// Returns whether rows may be sorted by this key: a column of `by`, or a figure that a profile can
// have.
bool IsSortKey(const std::vector<correlate::Dimension>& by, std::string_view key);

// Returns whether the report has the column: ratios are only in a report of several events.
bool HasColumn(const ProfileReport& report, std::string_view key);

// Returns "web", or "d1" for a domain without a name.
std::string DomainLabel(const ProfileReport& report, DomainId domain);
// Returns "d1 web", or "d1" for a domain without a name.
std::string DomainTitle(DomainId domain, const std::string& name);

// Returns the findings about the selection's domains, and about no single domain.
std::vector<findings::Finding> SelectedFindings(const ProfileReport& report,
                                                const ProfileSelection& selection);

// Returns what the row has in the column of the dimension.
Cell DimensionCell(const ProfileReport& report, const correlate::ProfileRow& row,
                   correlate::Dimension dimension);
// Returns the text of the row's dimension.
std::string DimensionText(const ProfileReport& report, const correlate::ProfileRow& row,
                          correlate::Dimension dimension);

// Returns a line for each row, in the selection's order.
Table ProfileTable(const ProfileReport& report, const ProfileSelection& selection);

// Returns the name of a frame: that of its function; "name (inlined)" for an inlined
// one, as in perf; "VMEXIT_CPUID" and "cpuid leaf 0x1" for frames of exits.
// `inlined` and `exits` are those of correlate::Stacks.
std::string FrameName(const ProfileReport& report, const std::vector<std::string>& inlined,
                      const std::vector<correlate::Context>& exits,
                      const correlate::StackFrame& frame);
// The same for a frame of `report.result`.
std::string FrameNameOf(const ProfileReport& report, const correlate::StackFrame& frame);

// Returns the frames of the row's stack from the outermost to the innermost, without exits for
// which the report has a column.
correlate::Stack ShownFrames(const ProfileReport& report, const correlate::ProfileRow& row);

// Returns the names of these frames.
std::vector<std::string> StackNames(const ProfileReport& report, const correlate::ProfileRow& row);

// Returns the selected rows, largest share first, up to the selection's limit.
std::vector<const correlate::ProfileRow*> SelectedRows(const ProfileReport& report,
                                                       const ProfileSelection& selection);

// Returns whether the row's domain is one of the selection's.
bool IsSelected(const ProfileSelection& selection, const correlate::ProfileRow& row);

std::string ProfileText(const ProfileReport& report, const ProfileSelection& selection,
                        const TextStyle& style);
std::string ProfileCsv(const ProfileReport& report, const ProfileSelection& selection);
nlohmann::ordered_json ProfileJson(const ProfileReport& report, const ProfileSelection& selection);

}  // namespace xenoscope::report
