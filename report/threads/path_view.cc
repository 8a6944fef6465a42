#include "report/threads/path_view.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "report/threads/thread_words.h"

namespace xenoscope::report {
namespace {

using guests::PathStep;

ThreadKey KeyOf(const PathStep& step, std::span<const guests::ThreadStates> domains, ThreadsBy by) {
  const auto domain = std::ranges::find(domains, step.of.domain, &guests::ThreadStates::domain);
  if (domain == domains.end() || step.of.thread >= domain->threads().size()) {
    return {step.of.domain, "", "", 0, "", 0};
  }
  return KeyOf(*domain, domain->threads()[step.of.thread], by);
}

const char* StateName(const PathStep& step) {
  return step.of.thread == guests::Culprit::kNoThread ? "[unknown]" : StateTitle(step.state);
}

}  // namespace

Table PathSumsTable(std::span<const PathStep> path, std::span<const guests::ThreadStates> domains,
                    const std::function<std::string(DomainId)>& name_of, Clock clock,
                    const ThreadsOptions& options) {
  std::map<std::pair<ThreadKey, std::string>, Cycles> sums;
  Cycles total = 0;
  for (const PathStep& step : path) {
    sums[{KeyOf(step, domains, options.by), StateName(step)}] += step.range.Length();
    total += step.range.Length();
  }
  std::vector<std::pair<std::pair<ThreadKey, std::string>, Cycles>> sorted(sums.begin(),
                                                                           sums.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(),
                           [](const auto& row) { return row.second; });
  const ThreadWords words(name_of, options);
  Table table;
  table.columns = words.Columns();
  const size_t named = table.columns.size();
  table.columns.push_back({"state", "state"});
  table.columns.push_back({"time_s", "time", ColumnUnit::kSeconds});
  for (const auto& [key, time] : sorted) {
    std::vector<Cell> cells = words.Of(key.first);
    cells.emplace_back(key.second);
    cells.emplace_back(clock.Seconds(time));
    table.AddRow(std::move(cells));
  }
  if (options.text) {
    std::vector<Cell> cells(named + 1);
    cells[0] = std::string("the path");
    cells.emplace_back(clock.Seconds(total));
    table.footers.push_back({std::move(cells)});
  }
  table.Limit(options.limit);
  return table;
}

Table PathStepsTable(std::span<const PathStep> path, std::span<const guests::ThreadStates> domains,
                     const std::function<std::string(DomainId)>& name_of, Clock clock,
                     const ThreadsOptions& options) {
  const ThreadWords words(name_of, options);
  Table table;
  table.columns = {{"begin_s", "begins", ColumnUnit::kSeconds},
                   {"wall_s", "takes", ColumnUnit::kSeconds}};
  for (Column& column : words.Columns()) table.columns.push_back(std::move(column));
  table.columns.push_back({"state", "state"});
  table.columns.push_back({"depth", "depth", ColumnUnit::kCount});
  for (const PathStep& step : path) {
    std::vector<Cell> cells{clock.Seconds(step.range.begin - path.front().range.begin),
                            clock.Seconds(step.range.Length())};
    for (Cell& cell : words.Of(KeyOf(step, domains, options.by))) cells.push_back(std::move(cell));
    cells.emplace_back(std::string(StateName(step)));
    cells.emplace_back(uint64_t{step.depth});
    table.AddRow(std::move(cells));
  }
  table.Limit(options.limit);
  return table;
}

}  // namespace xenoscope::report
