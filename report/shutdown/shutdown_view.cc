#include "report/shutdown/shutdown_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/signal_name.h"
#include "guests/threads/numbered_name.h"
#include "report/profile/changes.h"

namespace xenoscope::report {
namespace {

// Returns by what the process was asked to end.
std::string SignalsText(const guests::EndedProcess& process) {
  if (process.first_signal == 0) return "";
  if (process.last_signal == process.first_signal) return SignalName(process.first_signal);
  return SignalName(process.first_signal) + ", " + SignalName(process.last_signal);
}

}  // namespace

std::string_view EndText(recording::DomainChange::Kind how) {
  using Kind = recording::DomainChange::Kind;
  if (how == Kind::kUnknown) return "shut down";
  return how == Kind::kDestroyed ? "was destroyed" : ChangeText(how);
}

Table ShutdownProcessesTable(const guests::Shutdown& shutdown, const PhaseOptions& options) {
  Table table;
  table.columns = {{"process", "process"},
                   {"signals", "signals"},
                   {"begin_s", "begins", ColumnUnit::kSeconds},
                   {"wall_s", "takes", ColumnUnit::kSeconds},
                   {"ended", "ended"}};
  std::vector<const guests::EndedProcess*> order;
  order.reserve(shutdown.kernel.processes.size());
  for (const guests::EndedProcess& process : shutdown.kernel.processes) order.push_back(&process);
  std::ranges::stable_sort(order, std::ranges::greater(), [](const guests::EndedProcess* process) {
    return process->when.Length();
  });
  const Tsc begin = shutdown.phases.front().when.begin;
  for (const guests::EndedProcess* const process : order) {
    table.AddRow({guests::NumberedName(process->name, process->pid), SignalsText(*process),
                  options.clock.Seconds(process->when.begin - begin),
                  options.clock.Seconds(process->when.Length()),
                  std::string(process->ended ? "yes" : "no")});
  }
  table.Limit(options.limit);
  return table;
}

}  // namespace xenoscope::report
