#include "report/threads/span_figures.h"

#include <cstddef>

namespace xenoscope::report {

SpanFigures::SpanFigures(Clock clock, const ThreadsOptions& options,
                         const guests::StateTimes& total)
    : clock_(clock) {
  for (const StateColumn& column : StateColumns()) {
    const bool is_used = total[static_cast<size_t>(column.state)] > 0;
    if (is_used || !options.text) shown_.push_back(&column);
  }
}

void SpanFigures::AddLengthColumns(std::vector<Column>& columns) {
  columns.push_back({"time_s", "time", ColumnUnit::kSeconds});
  columns.push_back({"mean_s", "mean", ColumnUnit::kSeconds});
  columns.push_back({"longest_s", "longest", ColumnUnit::kSeconds});
}

void SpanFigures::AddLengths(const guests::StateTimes& times, uint64_t spans, Cycles longest,
                             std::vector<Cell>& cells) const {
  const double time = clock_.Seconds(guests::Sum(times));
  cells.emplace_back(time);
  cells.push_back(spans > 0 ? Cell(time / static_cast<double>(spans)) : Cell());
  cells.push_back(spans > 0 ? Cell(clock_.Seconds(longest)) : Cell());
}

void SpanFigures::AddStateColumns(std::vector<Column>& columns) const {
  for (const StateColumn* const column : shown_) {
    columns.push_back({column->key, column->title, ColumnUnit::kSeconds});
  }
}

void SpanFigures::AddStates(const guests::StateTimes& times, std::vector<Cell>& cells) const {
  for (const StateColumn* const column : shown_) {
    cells.emplace_back(clock_.Seconds(times[static_cast<size_t>(column->state)]));
  }
}

}  // namespace xenoscope::report
