#include "report/phases/phases_view.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "trace/exit_name.h"

namespace xenoscope::report {
namespace {

using guests::PhaseState;
using guests::PhaseTimes;

struct PhaseStateColumn {
  PhaseState state;
  const char* key;
  const char* title;
};
constexpr std::array<PhaseStateColumn, guests::kPhaseStates> kStates{{
    {PhaseState::kGuest, "guest_s", "guest"},
    {PhaseState::kXen, "xen_s", "in Xen"},
    {PhaseState::kStolen, "stolen_s", "stolen"},
    {PhaseState::kBlocked, "blocked_s", "blocked"},
    {PhaseState::kUntraced, "untraced_s", "untraced"},
    {PhaseState::kLost, "trace_lost_s", "trace lost"},
}};

uint64_t ExitsOf(const PhaseTimes& times) {
  return std::accumulate(
      times.exits.begin(), times.exits.end(), uint64_t{0},
      [](uint64_t sum, const guests::PhaseExit& exit) { return sum + exit.exits; });
}

}  // namespace

PhaseTimes SumOf(std::span<const guests::Phase> phases) {
  PhaseTimes sum;
  for (const guests::Phase& phase : phases) {
    for (size_t i = 0; i < sum.states.size(); ++i) sum.states[i] += phase.times.states[i];
    sum.exits.insert(sum.exits.end(), phase.times.exits.begin(), phase.times.exits.end());
  }
  return sum;
}

PhaseTimeColumns::PhaseTimeColumns(const PhaseTimes& sum, const PhaseOptions& options)
    : clock_(options.clock), exits_(!options.text || !sum.exits.empty()) {
  for (const PhaseStateColumn& column : kStates) {
    if (!options.text || sum[column.state] > 0) {
      shown_.push_back({column.state, {column.key, column.title, ColumnUnit::kSeconds}});
    }
  }
}

void PhaseTimeColumns::AddColumns(std::vector<Column>& columns) const {
  for (const Shown& shown : shown_) columns.push_back(shown.column);
  if (exits_) columns.push_back({"exits", "VM exits", ColumnUnit::kCount});
}

void PhaseTimeColumns::AddCells(const PhaseTimes& times, std::vector<Cell>& cells) const {
  for (const Shown& shown : shown_) cells.emplace_back(clock_.Seconds(times[shown.state]));
  if (exits_) cells.emplace_back(ExitsOf(times));
}

void PhaseTimeColumns::AddEmptyCells(std::vector<Cell>& cells) const {
  cells.resize(cells.size() + shown_.size() + (exits_ ? 1 : 0));
}

Table PhasesTable(std::span<const guests::Phase> phases, const std::string& whole,
                  const PhaseOptions& options) {
  const PhaseTimes sum = SumOf(phases);
  const PhaseTimeColumns times(sum, options);
  Table table;
  table.columns = {{"phase", "phase"},
                   {"begin_s", "begins", ColumnUnit::kSeconds},
                   {"wall_s", "takes", ColumnUnit::kSeconds}};
  times.AddColumns(table.columns);
  const Tsc begin = phases.front().when.begin;
  const auto row = [&](const std::string& name, TscRange when, const PhaseTimes& of) {
    std::vector<Cell> cells{name, options.clock.Seconds(when.begin - begin),
                            options.clock.Seconds(when.Length())};
    times.AddCells(of, cells);
    return cells;
  };
  for (const guests::Phase& phase : phases) {
    table.AddRow(row(phase.name, phase.when, phase.times));
  }
  if (options.text) {
    table.footers.push_back({row(whole, {begin, phases.back().when.end}, sum)});
  }
  return table;
}

Table PhaseExitsTable(std::span<const guests::Phase> phases, const PhaseOptions& options) {
  Table table;
  table.columns = {{"phase", "phase"},
                   {"exit", "VM exit"},
                   {"exits", "exits", ColumnUnit::kCount},
                   {"time_s", "in Xen", ColumnUnit::kSeconds}};
  for (const guests::Phase& phase : phases) {
    size_t rows = 0;
    for (const guests::PhaseExit& exit : phase.times.exits) {
      if (options.limit != 0 && rows++ == options.limit) break;
      table.AddRow({phase.name, trace::ExitName(options.vendor, exit.nested, exit.reason),
                    exit.exits, options.clock.Seconds(exit.time)});
    }
  }
  return table;
}

Table PhaseFunctionsTable(std::span<const guests::Phase> phases, const ProfileReport& profile,
                          DomainId domain, const PhaseOptions& options) {
  Table table;
  table.columns = {{"phase", "phase"},
                   {"mode", "mode"},
                   {"function", "function"},
                   {"samples", "samples", ColumnUnit::kCount},
                   {"time_s", "time", ColumnUnit::kSeconds},
                   {"time_low_s", "at least", ColumnUnit::kSeconds},
                   {"time_high_s", "at most", ColumnUnit::kSeconds}};
  std::map<std::string, std::vector<const correlate::ProfileRow*>> by_phase;
  // A sample with several possible places may leave next to nothing in a row.
  const double least = options.text ? 0.5 : 0;
  for (const correlate::ProfileRow& row : profile.result.rows) {
    if (row.domain == domain && row.samples >= least) by_phase[row.thread].push_back(&row);
  }
  const auto second = static_cast<double>(options.clock.hz);
  for (const guests::Phase& phase : phases) {
    std::vector<const correlate::ProfileRow*>& rows = by_phase[phase.name];
    std::ranges::stable_sort(rows, std::ranges::greater(), &correlate::ProfileRow::cycles);
    if (options.limit != 0 && rows.size() > options.limit) rows.resize(options.limit);
    for (const correlate::ProfileRow* const row : rows) {
      const double all = row->share > 0 ? row->cycles / row->share : 0;  // time that shares are of
      table.AddRow({phase.name, std::string(ToString(row->mode)),
                    DimensionText(profile, *row, correlate::Dimension::kFunction), row->samples,
                    row->cycles / second, row->interval.low * all / second,
                    row->interval.high * all / second});
    }
    rows.clear();
  }
  return table;
}

}  // namespace xenoscope::report
