#include "report/threads/syscalls_view.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "guests/threads/syscalls.h"
#include "report/threads/span_figures.h"
#include "report/threads/thread_words.h"

namespace xenoscope::report {
namespace {

using guests::Syscall;

struct NamedSyscall {
  uint64_t number;
  const char* name;
};
constexpr NamedSyscall kSyscallNames[] = {
#include "report/threads/syscall_names.inc"
};

void AddCall(const Syscall& call, Syscall& to) {
  to.calls += call.calls;
  to.errors += call.errors;
  to.cut += call.cut;
  guests::AddTo(to.times, call.times);
  to.longest = std::max(to.longest, call.longest);
}

// The columns after what a row stands for.
class SyscallFigures {
 public:
  SyscallFigures(Clock clock, const ThreadsOptions& options, const Syscall& total)
      : spans_(clock, options, total.times), has_cut_(!options.text || total.cut > 0) {}
  void AddColumns(std::vector<Column>& columns) const {
    columns.push_back({"calls", "calls", ColumnUnit::kCount});
    columns.push_back({"errors", "errors", ColumnUnit::kCount});
    if (has_cut_) columns.push_back({"cut", "cut", ColumnUnit::kCount});
    SpanFigures::AddLengthColumns(columns);
    spans_.AddStateColumns(columns);
  }
  void AddCells(const Syscall& call, std::vector<Cell>& cells) const {
    cells.emplace_back(call.calls);
    cells.emplace_back(call.errors);
    if (has_cut_) cells.emplace_back(call.cut);
    spans_.AddLengths(call.times, call.calls, call.longest, cells);
    spans_.AddStates(call.times, cells);
  }

 private:
  SpanFigures spans_;
  bool has_cut_;
};

}  // namespace

std::string SyscallName(uint64_t number) {
  if (number == guests::kOtherSyscalls) return "(others)";
  const auto* const found = std::ranges::find(kSyscallNames, number, &NamedSyscall::number);
  return found == std::end(kSyscallNames) ? std::to_string(number) : std::string(found->name);
}

Table SyscallsTable(std::span<const guests::ThreadStates> domains,
                    const std::function<std::string(DomainId)>& name_of, Clock clock,
                    const ThreadsOptions& options) {
  std::map<std::pair<ThreadKey, uint64_t>, Syscall> rows;
  Syscall total;
  for (const guests::ThreadStates& domain : domains) {
    for (const Syscall& call : domain.SystemCalls()) {
      const ThreadKey key = KeyOf(domain, domain.threads()[call.thread], options.by);
      AddCall(call, rows[{key, call.number}]);
      AddCall(call, total);
    }
  }
  std::vector<std::pair<std::pair<ThreadKey, uint64_t>, Syscall>> sorted(rows.begin(), rows.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), [](const auto& row) {
    return std::pair(guests::Sum(row.second.times), row.second.calls);
  });
  const ThreadWords words(name_of, options);
  const SyscallFigures figures(clock, options, total);
  Table table;
  table.columns = words.Columns();
  const size_t named = table.columns.size();
  table.columns.push_back({"call", "call"});
  figures.AddColumns(table.columns);
  for (const auto& [key, call] : sorted) {
    std::vector<Cell> cells = words.Of(key.first);
    cells.emplace_back(SyscallName(key.second));
    figures.AddCells(call, cells);
    table.AddRow(std::move(cells));
  }
  if (options.text) {
    std::vector<Cell> cells(named + 1);
    cells[0] = std::string("all threads");
    figures.AddCells(total, cells);
    table.footers.push_back({std::move(cells)});
  }
  table.Limit(options.limit);
  return table;
}

}  // namespace xenoscope::report
