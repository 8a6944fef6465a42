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
  std::vector<DiffRow> rows;  // the largest differences first
  double samples_before = 0;
  double samples_after = 0;
};

// Of rows that have the same words, wherever their code lay; a row that only one has is compared
// with what is known of something that was not seen. Both are by the same dimensions.
Diff DiffOfProfiles(const ProfileReport& before, const ProfileReport& after, DiffOf of);

struct DiffSelection {
  double threshold = 0;  // least difference
  size_t limit = 0;      // rows; 0: all
};

std::string DiffText(const Diff& diff, const DiffSelection& selection, const TextStyle& style);
std::string DiffCsv(const Diff& diff, const DiffSelection& selection);
nlohmann::ordered_json DiffJson(const Diff& diff, const DiffSelection& selection);

}  // namespace xenoscope::report
