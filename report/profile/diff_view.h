// Two or more profiles side by side, with the significance of their differences from the first: the
// output of `xenoscope diff`.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "correlate/difference.h"
#include "correlate/profile.h"
#include "report/profile/profile_view.h"
#include "report/table/table_text.h"

namespace xenoscope::report {

// The figure that is compared.
enum class DiffBasis {
  kShare,      // part of all time, or of all samples
  kProcessor,  // CPU time per second: 2 is two CPUs
  kWork,       // cycles per unit of work; samples if the event does not count time
};

// A profile that is compared. It must outlive the comparison.
struct DiffSide {
  const ProfileReport* profile = nullptr;
  std::string name;  // description for the heading
  double work = 1;   // units of work that were done during the recording
};

// The difference of a row of a later profile from the first profile's.
struct DiffChange {
  correlate::Estimated after;
  correlate::Difference difference;
  bool is_new = false;  // no samples before, some after
  bool is_gone = false;
};

struct DiffRow {
  std::vector<std::string> words;  // text of each dimension
  correlate::Estimated before;
  std::vector<DiffChange> changes;  // one for each of Diff::afters
  // Returns the largest absolute difference.
  double Largest() const;
};

struct DiffedProfile {
  std::string name;
  double samples = 0;
};

struct Diff {
  DiffedProfile before;
  std::vector<DiffedProfile> afters;  // at least one
  std::vector<correlate::Dimension> by;
  DiffBasis of = DiffBasis::kShare;
  bool of_domains = false;  // each side is one domain; shares are parts of that domain
  bool is_time = true;
  double whole = 1;           // figure of a share of 1 in the first profile
  std::vector<DiffRow> rows;  // largest differences first
  size_t comparisons = 0;     // number of comparisons that p-values are corrected for
};

// Compares rows with those of the first profile that have the same text, at any address. A row
// that only one profile has is compared with the estimate for zero samples. `sides` has two or more
// profiles by the same dimensions.
Diff DiffProfiles(std::span<const DiffSide> sides, DiffBasis of);

// Returns the rows that grew in a later profile by more than `threshold`, a part of Diff::whole,
// and by more than chance (corrected p below 0.05), largest first. O(rows).
std::vector<const DiffRow*> GrownRows(const Diff& diff, double threshold);
// Returns a sentence that names the first of these rows: "2 rows grew by more than 2 %: ...".
std::string GrownRowsText(const Diff& diff, const std::vector<const DiffRow*>& grown,
                          double threshold);

struct DiffSelection {
  double threshold = 0;  // minimum difference, as a part of Diff::whole
  size_t limit = 0;      // maximum of rows; 0: all
};

std::string DiffText(const Diff& diff, const DiffSelection& selection, const TextStyle& style);
std::string DiffCsv(const Diff& diff, const DiffSelection& selection);
// One line a row, "outermost;...;innermost BEFORE AFTER", as difffolded.pl of Brendan Gregg's
// FlameGraph writes and flamegraph.pl reads. AFTER is the first of Diff::afters. Units: millionths,
// or cycles per million units of work.
std::string DiffFolded(const Diff& diff, const DiffSelection& selection);
nlohmann::ordered_json DiffJson(const Diff& diff, const DiffSelection& selection);

}  // namespace xenoscope::report
