#include "report/threads/interrupts_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "guests/threads/interrupts.h"

namespace xenoscope::report {
namespace {

using guests::Interrupt;

const char* KindName(const guests::InterruptKey& key) { return key.is_soft ? "softirq" : "irq"; }

}  // namespace

std::string HandlerTitle(const guests::InterruptKey& key) {
  const std::string_view name = guests::HandlerName(key);
  if (key.is_soft && !name.empty()) return fmt::format("{} {}", KindName(key), name);
  return fmt::format("{} {}{}{}", KindName(key), key.number, name.empty() ? "" : " ", name);
}

Table InterruptsTable(std::span<const guests::ThreadStates> domains,
                      const std::function<std::string(DomainId)>& name_of, Clock clock,
                      const ThreadsOptions& options) {
  std::vector<std::pair<DomainId, Interrupt>> rows;
  guests::StateTimes sums{};
  for (const guests::ThreadStates& domain : domains) {
    for (Interrupt& interrupt : domain.Handlers()) {
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += interrupt.times[i];
      rows.emplace_back(domain.domain(), std::move(interrupt));
    }
  }
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const auto& row) { return guests::Sum(row.second.times); });
  std::vector<StateColumn> shown;
  for (const StateColumn& column : StateColumns()) {
    const auto state = static_cast<size_t>(column.state);
    const bool is_of_vcpus =
        guests::IsOnVcpu(column.state) || column.state == guests::ThreadState::kLost;
    if (is_of_vcpus && (!options.text || sums[state] > 0)) shown.push_back(column);
  }
  Table table;
  table.columns = {{"domain", "domain"},
                   {"kind", "kind"},
                   {"number", "number", ColumnUnit::kCount},
                   {"handler", "handler"},
                   {"runs", "runs", ColumnUnit::kCount},
                   {"cut", "cut", ColumnUnit::kCount},
                   {"time_s", "time", ColumnUnit::kSeconds},
                   {"longest_s", "longest", ColumnUnit::kSeconds}};
  for (const StateColumn& column : shown) {
    table.columns.push_back({column.key, column.title, ColumnUnit::kSeconds});
  }
  for (const auto& [domain, interrupt] : rows) {
    std::vector<Cell> cells{DomainLabel(domain, name_of(domain)),
                            std::string(KindName(interrupt.key)),
                            interrupt.key.number,
                            std::string(guests::HandlerName(interrupt.key)),
                            interrupt.runs,
                            interrupt.cut,
                            clock.Seconds(guests::Sum(interrupt.times)),
                            clock.Seconds(interrupt.longest)};
    for (const StateColumn& column : shown) {
      cells.emplace_back(clock.Seconds(interrupt.times[static_cast<size_t>(column.state)]));
    }
    table.AddRow(std::move(cells));
  }
  table.Limit(options.limit);
  return table;
}

}  // namespace xenoscope::report
