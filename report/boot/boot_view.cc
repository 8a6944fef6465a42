#include "report/boot/boot_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace xenoscope::report {
namespace {

std::string FunctionName(const guests::BootInitcall& initcall) {
  return initcall.function.empty() ? fmt::format("{:#x}", initcall.address) : initcall.function;
}

}  // namespace

Table BootPhasesTable(const guests::Boot& boot, const PhaseOptions& options) {
  Table table = PhasesTable(boot.phases, "boot", options);
  table.columns.push_back({"initcalls", "initcalls", ColumnUnit::kCount});
  uint64_t all = 0;
  size_t i = 0;
  for (TableRow& row : table.groups.front().rows) {
    const std::optional<uint64_t> initcalls = boot.initcalls[i++];
    all += initcalls.value_or(0);
    Cell& cell = row.cells.emplace_back();
    if (initcalls) cell = *initcalls;
  }
  for (Footer& footer : table.footers) footer.cells.emplace_back(all);
  return table;
}

Table BootInitcallsTable(const guests::Boot& boot, const PhaseOptions& options) {
  const PhaseTimeColumns times(SumOf(boot.phases), options);
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
        FunctionName(initcall), boot.phases[guests::Boot::kPhasesBefore + initcall.phase].name,
        options.clock.Seconds(initcall.when.begin - boot.phases.front().when.begin),
        options.clock.Seconds(initcall.when.Length())};
    if (initcall.by_boot) {
      times.AddCells(boot.initcall_times[i], cells);
    } else {
      times.AddEmptyCells(cells);
    }
    Cell& result = cells.emplace_back();
    if (initcall.finished) result = static_cast<double>(initcall.result);
    table.AddRow(std::move(cells));
  }
  table.Limit(options.limit);
  return table;
}

}  // namespace xenoscope::report
