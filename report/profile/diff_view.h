// Two profiles or more side by side, and which differences from the first are more than chance:
// what `xenoscope diff` prints.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "correlate/difference.h"
#include "correlate/profile.h"
#include "report/profile/profile_view.h"
#include "report/table/table_text.h"

namespace xenoscope::report {

// What is compared of a row.
enum class DiffBasis {
  kShare,      // of all time, or of all samples
  kProcessor,  // processors' time a second: 2 is two processors
  kWork,       // cycles a unit of work; samples where the event does not count time
};

// A profile that is compared; it outlives the comparison.
struct DiffSide {
  const ProfileReport* profile = nullptr;
  std::string name;  // in words
  double work = 1;   // units of work that were done meanwhile
};

// How a row of one of the later profiles differs from the first's.
struct DiffChange {
  correlate::Estimated after;
  correlate::Difference difference;
  bool is_new = false;  // no samples of it before
  bool is_gone = false;
};

struct DiffRow {
  std::vector<std::string> words;  // of the dimensions
  correlate::Estimated before;
  std::vector<DiffChange> changes;  // one for each of Diff::afters
  // How much the change that is largest is.
  double Largest() const;
};

struct DiffedProfile {
  std::string name;
  double samples = 0;
};

struct Diff {
  DiffedProfile before;
  std::vector<DiffedProfile> afters;  // one or more
  std::vector<correlate::Dimension> by;
  DiffBasis of = DiffBasis::kShare;
  bool of_domains = false;  // each side is one domain, and shares are of its own
  bool is_time = true;
  double whole = 1;           // what a row with a share of 1 would have had before
  std::vector<DiffRow> rows;  // the largest differences first
  size_t comparisons = 0;     // for so many p-values are corrected
};

// Of rows that have the same words, wherever their code lay; a row that only one has is compared
// with what is known of something that was not seen. The first is what the others are compared
// with; all, of which there are two or more, are by the same dimensions.
Diff DiffProfiles(std::span<const DiffSide> sides, DiffBasis of);

struct DiffSelection {
  double threshold = 0;  // least difference, as a part of Diff::whole
  size_t limit = 0;      // rows; 0: all
};

std::string DiffText(const Diff& diff, const DiffSelection& selection, const TextStyle& style);
std::string DiffCsv(const Diff& diff, const DiffSelection& selection);
// "outermost;...;innermost BEFORE AFTER", a line a row, as difffolded.pl of Brendan Gregg's
// FlameGraph writes and flamegraph.pl reads: millionths, or cycles a million units of work. Of the
// first of Diff::afters.
std::string DiffFolded(const Diff& diff, const DiffSelection& selection);
nlohmann::ordered_json DiffJson(const Diff& diff, const DiffSelection& selection);

}  // namespace xenoscope::report
