#include "report/calls/calls_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "guests/threads/state_times.h"
#include "report/threads/span_figures.h"

namespace xenoscope::report {
namespace {

// The columns of sums of calls.
class CallFigures {
 public:
  CallFigures(const CallSums& all, const CallsOptions& options)
      : clock_(options.clock),
        has_cut_(!options.text || all.cut > 0),
        has_times_(!options.text || guests::Sum(all.total) > 0),
        states_(options.clock, {.text = options.text}, all.total) {}

  void AddColumns(std::vector<Column>& columns) const {
    columns.push_back({"calls", "calls", ColumnUnit::kCount});
    if (has_cut_) columns.push_back({"cut", "cut", ColumnUnit::kCount});
    if (!has_times_) return;
    columns.push_back({"total_s", "total", ColumnUnit::kSeconds});
    columns.push_back({"self_s", "self", ColumnUnit::kSeconds});
    columns.push_back({"longest_s", "longest", ColumnUnit::kSeconds});
    states_.AddStateColumns(columns);
  }
  // `divided` is what the states are of: the time with the calls within, or without.
  void AddCells(const CallSums& sums, const guests::StateTimes& divided,
                std::vector<Cell>& cells) const {
    cells.emplace_back(sums.calls);
    if (has_cut_) cells.emplace_back(sums.cut);
    if (!has_times_) return;
    if (sums.timed == 0 && guests::Sum(sums.total) == 0) return;
    cells.emplace_back(clock_.Seconds(guests::Sum(sums.total)));
    cells.emplace_back(clock_.Seconds(guests::Sum(sums.self)));
    Cell& longest = cells.emplace_back();
    if (sums.timed > 0) longest = clock_.Seconds(sums.longest);
    states_.AddStates(divided, cells);
  }

 private:
  Clock clock_;
  bool has_cut_;
  bool has_times_;
  SpanFigures states_;
};

// Builds a table of a forest, group by group.
class CallTableBuilder {
 public:
  CallTableBuilder(const CallForest& forest, const CallGroups& groups, const CallsOptions& options,
                   bool is_tree)
      : forest_(forest),
        groups_(groups),
        text_(options.text),
        is_tree_(is_tree),
        figures_(SumOfAll(forest), options) {
    if (!text_) table_.columns = groups.columns;
    if (!text_ && is_tree) table_.columns.push_back({"depth", "depth", ColumnUnit::kCount});
    table_.columns.push_back({"function", "function"});
    figures_.AddColumns(table_.columns);
  }

  // The rows that follow are of the group.
  void BeginGroup(size_t group) {
    group_ = group;
    RowGroup& rows = table_.groups.emplace_back();
    if (!text_) return;
    std::string heading;
    for (const Cell& cell : groups_.words[group]) {
      const auto* const word = std::get_if<std::string>(&cell);
      if (word != nullptr && !word->empty()) heading += (heading.empty() ? "" : " ") + *word;
    }
    rows.heading = {heading};
    figures_.AddCells(forest_.SumOf(group), forest_.SumOf(group).total, rows.heading);
  }
  void AddRow(const std::string& function, const CallSums& sums, size_t depth = 0) {
    std::vector<Cell> cells;
    if (!text_) cells = groups_.words[group_];
    if (!text_ && is_tree_) cells.emplace_back(uint64_t{depth});
    cells.emplace_back(function);
    figures_.AddCells(sums, is_tree_ ? sums.total : sums.self, cells);
    cells.resize(table_.columns.size());
    table_.groups.back().rows.push_back({std::move(cells), static_cast<int>(depth + 1)});
  }
  Table& table() { return table_; }

 private:
  static CallSums SumOfAll(const CallForest& forest) {
    CallSums sums;
    for (size_t group = 0; group < forest.groups(); ++group) sums.Add(forest.SumOf(group));
    return sums;
  }

  const CallForest& forest_;
  const CallGroups& groups_;
  bool text_;
  bool is_tree_;
  CallFigures figures_;
  Table table_;
  size_t group_ = 0;
};

// Adds the calls and what is within them, those not `shown` as one row.
class TreeRows {
 public:
  TreeRows(const CallForest& forest, std::vector<bool> shown, CallTableBuilder& builder)
      : forest_(forest), shown_(std::move(shown)), builder_(builder) {}

  void Add(const std::vector<size_t>& calls, size_t depth) {
    std::vector<size_t> sorted;
    CallSums others;
    size_t folded = 0;
    for (const size_t call : calls) {
      if (shown_[call]) {
        sorted.push_back(call);
      } else {
        ++folded;
        others.Add(forest_.Call(call).sums);
      }
    }
    std::ranges::stable_sort(sorted, std::ranges::greater(), [this](size_t call) {
      const CallSums& sums = forest_.Call(call).sums;
      return std::pair(guests::Sum(sums.total), sums.calls);
    });
    for (const size_t call : sorted) {
      const MergedCall& merged = forest_.Call(call);
      builder_.AddRow(forest_.NameOfFunction(merged.function), merged.sums, depth);
      Add(merged.callees, depth + 1);
    }
    if (folded == 0) return;
    others.self = others.total;  // what is within them is not shown
    builder_.AddRow(fmt::format("[{} more]", folded), others, depth);
  }

 private:
  const CallForest& forest_;
  std::vector<bool> shown_;
  CallTableBuilder& builder_;
};

// Returns the groups that have calls, in the order in which they are shown.
std::vector<size_t> ShownGroups(const CallForest& forest, const CallsOptions& options) {
  std::vector<size_t> groups;
  for (size_t group = 0; group < forest.groups(); ++group) {
    if (!forest.Outermost(group).empty()) groups.push_back(group);
  }
  if (!options.longest_first) return groups;
  std::ranges::stable_sort(groups, std::ranges::greater(), [&forest](size_t group) {
    return std::pair(guests::Sum(forest.SumOf(group).total), forest.SumOf(group).calls);
  });
  return groups;
}

}  // namespace

Table CallsTable(const CallForest& forest, const CallGroups& groups, const CallsOptions& options) {
  CallTableBuilder builder(forest, groups, options, /*is_tree=*/false);
  for (const size_t group : ShownGroups(forest, options)) {
    builder.BeginGroup(group);
    for (const CalledFunction& function : forest.FunctionsOf(group)) {
      builder.AddRow(forest.NameOfFunction(function.function), function.sums);
    }
  }
  builder.table().Limit(options.limit);
  return std::move(builder.table());
}

Table CallTreeTable(const CallForest& forest, const CallGroups& groups,
                    const CallsOptions& options) {
  CallTableBuilder builder(forest, groups, options, /*is_tree=*/true);
  for (const size_t group : ShownGroups(forest, options)) {
    builder.BeginGroup(group);
    TreeRows(forest, forest.LongestOf(group, options.limit), builder)
        .Add(forest.Outermost(group), 0);
  }
  return std::move(builder.table());
}

}  // namespace xenoscope::report
