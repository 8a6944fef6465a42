#include "report/boot/boot_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "trace/exit_name.h"

namespace xenoscope::report {
namespace {

using guests::BootState;
using guests::BootTimes;

struct BootStateColumn {
  BootState state;
  const char* key;
  const char* title;
};
constexpr std::array<BootStateColumn, guests::kBootStates> kStates{{
    {BootState::kGuest, "guest_s", "guest"},
    {BootState::kXen, "xen_s", "in Xen"},
    {BootState::kStolen, "stolen_s", "stolen"},
    {BootState::kBlocked, "blocked_s", "blocked"},
    {BootState::kUntraced, "untraced_s", "untraced"},
    {BootState::kLost, "trace_lost_s", "trace lost"},
}};

uint64_t ExitsOf(const BootTimes& times) {
  return std::accumulate(
      times.exits.begin(), times.exits.end(), uint64_t{0},
      [](uint64_t sum, const guests::BootExit& exit) { return sum + exit.exits; });
}

// The columns of times: in text those in which something is.
class TimeColumns {
 public:
  TimeColumns(const BootTimes& sum, const BootOptions& options)
      : clock_(options.clock), exits_(!options.text || !sum.exits.empty()) {
    for (const BootStateColumn& column : kStates) {
      if (!options.text || sum[column.state] > 0) shown_.push_back(&column);
    }
  }

  void AddColumns(std::vector<Column>& columns) const {
    for (const BootStateColumn* const column : shown_) {
      columns.push_back({column->key, column->title, ColumnUnit::kSeconds});
    }
    if (exits_) columns.push_back({"exits", "VM exits", ColumnUnit::kCount});
  }
  void AddCells(const BootTimes& times, std::vector<Cell>& cells) const {
    for (const BootStateColumn* const column : shown_) {
      cells.emplace_back(clock_.Seconds(times[column->state]));
    }
    if (exits_) cells.emplace_back(ExitsOf(times));
  }
  void AddEmptyCells(std::vector<Cell>& cells) const {
    cells.resize(cells.size() + shown_.size() + (exits_ ? 1 : 0));
  }

 private:
  Clock clock_;
  std::vector<const BootStateColumn*> shown_;
  bool exits_;
};

void Add(const BootTimes& times, BootTimes& to) {
  for (size_t i = 0; i < to.states.size(); ++i) to.states[i] += times.states[i];
  to.exits.insert(to.exits.end(), times.exits.begin(), times.exits.end());
}

BootTimes SumOf(const guests::Boot& boot) {
  BootTimes sum;
  for (const guests::BootPart& part : boot.parts) Add(part.times, sum);
  return sum;
}

std::string FunctionName(const guests::BootInitcall& initcall) {
  return initcall.function.empty() ? fmt::format("{:#x}", initcall.address) : initcall.function;
}

}  // namespace

Table BootPhasesTable(const guests::Boot& boot, const BootOptions& options) {
  const BootTimes sum = SumOf(boot);
  const TimeColumns times(sum, options);
  Table table;
  table.columns = {{"phase", "phase"},
                   {"begin_s", "begins", ColumnUnit::kSeconds},
                   {"wall_s", "takes", ColumnUnit::kSeconds}};
  times.AddColumns(table.columns);
  table.columns.push_back({"initcalls", "initcalls", ColumnUnit::kCount});
  const Tsc begin = boot.parts.front().when.begin;
  const auto add = [&](const std::string& name, TscRange when, const BootTimes& of,
                       Cell initcalls) {
    std::vector<Cell> cells{name, options.clock.Seconds(when.begin - begin),
                            options.clock.Seconds(when.Length())};
    times.AddCells(of, cells);
    cells.push_back(std::move(initcalls));
    return cells;
  };
  uint64_t initcalls = 0;
  for (const guests::BootPart& part : boot.parts) {
    initcalls += part.initcalls;
    table.AddRow(
        add(part.name, part.when, part.times, part.is_level ? Cell(part.initcalls) : Cell()));
  }
  if (options.text) {
    table.footers.push_back(
        {add("boot", {begin, boot.parts.back().when.end}, sum, Cell(initcalls))});
  }
  return table;
}

Table BootInitcallsTable(const guests::Boot& boot, const BootOptions& options) {
  const TimeColumns times(SumOf(boot), options);
  Table table;
  table.columns = {{"function", "initcall"},
                   {"phase", "phase"},
                   {"begin_s", "begins", ColumnUnit::kSeconds},
                   {"wall_s", "takes", ColumnUnit::kSeconds}};
  times.AddColumns(table.columns);
  table.columns.push_back({"result", "result", ColumnUnit::kCount});
  const std::vector<guests::BootInitcall>& initcalls = boot.kernel.initcalls;
  std::vector<size_t> order(initcalls.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t i) { return initcalls[i].when.Length(); });
  for (const size_t i : order) {
    const guests::BootInitcall& initcall = initcalls[i];
    std::vector<Cell> cells{
        FunctionName(initcall), boot.parts[guests::Boot::kPartsBefore + initcall.phase].name,
        options.clock.Seconds(initcall.when.begin - boot.parts.front().when.begin),
        options.clock.Seconds(initcall.when.Length())};
    if (initcall.by_boot) {
      times.AddCells(boot.initcall_times[i], cells);
    } else {
      times.AddEmptyCells(cells);
    }
    cells.push_back(initcall.finished ? Cell(static_cast<double>(initcall.result)) : Cell());
    table.AddRow(std::move(cells));
  }
  table.Limit(options.limit);
  return table;
}

Table BootExitsTable(const guests::Boot& boot, const BootOptions& options) {
  Table table;
  table.columns = {{"phase", "phase"},
                   {"exit", "VM exit"},
                   {"exits", "exits", ColumnUnit::kCount},
                   {"time_s", "in Xen", ColumnUnit::kSeconds}};
  for (const guests::BootPart& part : boot.parts) {
    size_t rows = 0;
    for (const guests::BootExit& exit : part.times.exits) {
      if (options.limit != 0 && rows++ == options.limit) break;
      table.AddRow({part.name, trace::ExitName(options.vendor, exit.nested, exit.reason),
                    exit.exits, options.clock.Seconds(exit.time)});
    }
  }
  return table;
}

Table BootFunctionsTable(const guests::Boot& boot, const ProfileReport& profile, DomainId domain,
                         const BootOptions& options) {
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
  for (const guests::BootPart& part : boot.parts) {
    std::vector<const correlate::ProfileRow*>& rows = by_phase[part.name];
    std::ranges::stable_sort(rows, std::ranges::greater(), &correlate::ProfileRow::cycles);
    if (options.limit != 0 && rows.size() > options.limit) rows.resize(options.limit);
    for (const correlate::ProfileRow* const row : rows) {
      const double all = row->share > 0 ? row->cycles / row->share : 0;  // time that shares are of
      table.AddRow({part.name, std::string(ToString(row->mode)),
                    DimensionText(profile, *row, correlate::Dimension::kFunction), row->samples,
                    row->cycles / second, row->interval.low * all / second,
                    row->interval.high * all / second});
    }
    rows.clear();
  }
  return table;
}

}  // namespace xenoscope::report
