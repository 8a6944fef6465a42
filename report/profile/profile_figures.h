// The figures of a profile's rows as columns and cells of a table: samples, share, interval,
// cycles, those of events beside it, and their ratios.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "correlate/event_sums.h"
#include "correlate/profile_result.h"
#include "report/profile/profile_view.h"
#include "report/table/table.h"

namespace xenoscope::report {

// Returns the columns of figures: totals, those of the profile's event, of the events beside it,
// of their ratios, and the number and cost of exits.
std::vector<Column> FigureColumns(const ProfileReport& report, Reader reader);
void AddFigureColumns(const ProfileReport& report, Reader reader, Table& table);

// Adds the cells of these columns.
void AddFigures(const ProfileReport& report, const correlate::ProfileRow& row, Reader reader,
                std::vector<Cell>& cells);
void AddRatios(const std::vector<correlate::RatioEstimate>& ratios, std::vector<Cell>& cells);

// Says for people that the trace measures the share, in place of an interval without a width.
// `cells` are a row of the table.
void NameTraced(const ProfileReport& report, const Table& table, const correlate::ProfileRow& row,
                std::vector<Cell>& cells);

// The share by which rows are left out and compared: of totals, if there are any.
[[nodiscard]] double LargestShare(const correlate::ProfileRow& row);

// The sum of what rows have in the columns that add up. Intervals and ratios do not.
class FigureSum {
 public:
  FigureSum(const ProfileReport& report, const Table& table);
  void Add(const std::vector<Cell>& cells);
  // Returns the cells of a row with the sum, and its name in the column `name_at`.
  std::vector<Cell> RowOf(size_t name_at);

 private:
  std::vector<size_t> columns_;
  std::vector<Cell> cells_;
  size_t rows_ = 0;
};

// Limits the groups, one for each domain, to the first kMostDomains, and adds one for the sum of
// the others. The names of groups are in the column `name_at`.
void LimitDomains(const ProfileReport& report, const ProfileSelection& selection, size_t name_at,
                  Table& table);

}  // namespace xenoscope::report
