// Shares over time, as a table: the output of `xenoscope trend`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "correlate/change_points.h"
#include "correlate/estimate.h"
#include "report/profile/profile_view.h"
#include "report/table/table.h"

namespace xenoscope::report {

// The profile of one part of the time. All parts are by the same columns.
struct TrendPart {
  std::string begin;  // the time at which it begins, as text
  ProfileReport profile;
};

// A row's share in one part of the time.
struct TrendPoint {
  double share = 0;
  correlate::Interval interval;
  std::optional<correlate::ChangePoint> change;  // the level changes from here on
};

struct TrendRow {
  std::vector<std::string> words;  // of the columns
  std::vector<TrendPoint> points;  // by part
};

// Returns the `limit` rows with the largest mean shares, largest first; 0: all. Changes are
// correlate::FindChangePoints of each row at 5 % divided by the number of rows returned: the
// probability that any row is marked whose level does not change is at most 5 %. O(rows log rows),
// beside FindChangePoints.
[[nodiscard]] std::vector<TrendRow> Trend(const std::vector<TrendPart>& parts, size_t limit);

// Returns a line for each row and part, rows one after the other.
[[nodiscard]] Table TrendTable(const std::vector<TrendPart>& parts,
                               const std::vector<TrendRow>& rows);

}  // namespace xenoscope::report
