// Writes the rows of `xenoscope timeline --series` as text, CSV or JSON, one interval at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "analysis/series/series_pass.h"
#include "base/tsc.h"

namespace xenoscope::report {

// A writer of a beginning, a row for each interval, and an end. Each call appends to `out`.
class SeriesRows {
 public:
  virtual ~SeriesRows() = default;
  virtual void Begin(std::string& out) = 0;
  virtual void Row(const analysis::IntervalRow& row, std::string& out) = 0;
  virtual void End(std::string& out) = 0;
};

// Makes a writer. `format` is "text" (times as shares of the interval), "csv" (a column for each
// line, times in seconds) or "json" (times in cycles). `totals` must outlive the writer.
std::unique_ptr<SeriesRows> MakeSeriesRows(std::string_view format,
                                           const analysis::SeriesTotals& totals);

}  // namespace xenoscope::report
