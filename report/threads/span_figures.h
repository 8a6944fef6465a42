// Columns of tables of what threads did from one instant to another: system calls, waits for locks.
#pragma once

#include <cstdint>
#include <vector>

#include "base/tsc.h"
#include "guests/threads/state_times.h"
#include "report/table/table.h"
#include "report/threads/threads_view.h"

namespace xenoscope::report {

class SpanFigures {
 public:
  // Text leaves out the states in which `total`, the sum of all rows, has no time.
  SpanFigures(Clock clock, const ThreadsOptions& options, const guests::StateTimes& total);

  // The time of all spans of a row, their mean, and the longest one; cells of a row without spans
  // have no mean and no longest one.
  static void AddLengthColumns(std::vector<Column>& columns);
  void AddLengths(const guests::StateTimes& times, uint64_t spans, Cycles longest,
                  std::vector<Cell>& cells) const;

  // What the threads did meanwhile.
  void AddStateColumns(std::vector<Column>& columns) const;
  void AddStates(const guests::StateTimes& times, std::vector<Cell>& cells) const;

 private:
  Clock clock_;
  std::vector<const StateColumn*> shown_;
};

}  // namespace xenoscope::report
