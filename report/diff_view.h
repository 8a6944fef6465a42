// Two profiles side by side, and which differences are more than chance: what `xenoscope diff`
// prints.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "correlate/difference.h"
#include "correlate/profile.h"
#include "report/profile_view.h"
#include "report/table_text.h"

namespace xenoscope::report {

// What is compared of a row.
enum class DiffOf {
  kShare,      // of all time, or of all samples
  kProcessor,  // processors' time a second: 2 is two processors
  kWork,       // cycles a unit of work; samples where the event does not count time
};

// Units of work done while each was recorded.
struct Work {
  double before = 1;
  double after = 1;
};

struct DiffRow {
  std::vector<std::string> words;  // of the dimensions
  correlate::Pair pair;
  correlate::Difference difference;
  bool is_new = false;  // no samples of it before
  bool is_gone = false;
};

struct Diff {
  std::string before;  // what was compared, in words
  std::string after;
  std::vector<correlate::Dimension> by;
  DiffOf of = DiffOf::kShare;
  bool of_domains = false;  // each side is one domain, and shares are of its own
  bool is_time = true;
  double whole = 1;           // what a row with a share of 1 would have had before
  std::vector<DiffRow> rows;  // the largest differences first
  double samples_before = 0;
  double samples_after = 0;
};

// Of rows that have the same words, wherever their code lay; a row that only one has is compared
// with what is known of something that was not seen. Both are by the same dimensions.
Diff DiffOfProfiles(const ProfileReport& before, const ProfileReport& after, DiffOf of,
                    Work work = {});

struct DiffSelection {
  double threshold = 0;  // least difference, as a part of Diff::whole
  size_t limit = 0;      // rows; 0: all
};

std::string DiffText(const Diff& diff, const DiffSelection& selection, const TextStyle& style);
std::string DiffCsv(const Diff& diff, const DiffSelection& selection);
// "outermost;...;innermost BEFORE AFTER", a line a row, as difffolded.pl of Brendan Gregg's
// FlameGraph writes and flamegraph.pl reads: millionths, or cycles a million units of work.
std::string DiffFolded(const Diff& diff, const DiffSelection& selection);
nlohmann::ordered_json DiffJson(const Diff& diff, const DiffSelection& selection);

}  // namespace xenoscope::report
