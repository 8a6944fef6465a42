#include "report/threads/thread_exits_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "guests/threads/xen_times.h"
#include "report/exit_names.h"
#include "report/threads/thread_words.h"
#include "trace/exit_name.h"

namespace xenoscope::report {
namespace {

using guests::EntryKind;
using guests::XenReason;

struct ReasonTime {
  uint64_t entries = 0;
  Cycles time = 0;
};

// A reason and a subreason.
using ReasonNames = std::pair<std::string, std::string>;

ReasonNames NamesOf(const XenReason& reason, trace::Vendor vendor) {
  const auto named = [&reason](const char* what, std::string_view name) {
    return ReasonNames(what, name.empty() ? std::to_string(reason.reason) : std::string(name));
  };
  switch (reason.kind) {
    case EntryKind::kExit:
      return {trace::ExitName(vendor, reason.nested, reason.reason),
              SubreasonName(reason.exit_kind, reason.number)};
    case EntryKind::kResume:
      return {"resume", "-"};
    case EntryKind::kHypercall:
      return named("hypercall", trace::HypercallName(reason.reason));
    case EntryKind::kSubcall:
      return named("hypercall in multicall", trace::HypercallName(reason.reason));
    case EntryKind::kTrap:
      return named("trap", trace::TrapName(reason.reason));
    case EntryKind::kPageFault:
      return {"page fault", "-"};
    case EntryKind::kEmulation:
      return {"emulation", "-"};
    case EntryKind::kOthers:
      break;
  }
  return {"(others)", "-"};
}

// Whether the trace has the end of what began.
bool HasTime(EntryKind kind) {
  return kind == EntryKind::kExit || kind == EntryKind::kResume || kind == EntryKind::kOthers;
}

}  // namespace

Table ThreadExitsTable(std::span<const guests::ThreadStates> domains,
                       const std::function<std::string(DomainId)>& name_of, Clock clock,
                       trace::Vendor vendor, const ThreadsOptions& options) {
  std::map<std::pair<ThreadKey, XenReason>, ReasonTime> rows;
  ReasonTime total;
  for (const guests::ThreadStates& domain : domains) {
    for (const guests::XenTime& time : domain.InXen()) {
      const ThreadKey key = KeyOf(domain, domain.threads()[time.thread], options.by);
      for (ReasonTime* const sum : {&rows[{key, time.reason}], &total}) {
        sum->entries += time.entries;
        sum->time += time.time;
      }
    }
  }
  std::vector<std::pair<std::pair<ThreadKey, XenReason>, ReasonTime>> sorted(rows.begin(),
                                                                             rows.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), [](const auto& row) {
    return std::pair(row.second.time, row.second.entries);
  });
  const ThreadWords words(name_of, options);
  Table table;
  table.columns = words.Columns();
  const size_t named = table.columns.size();
  table.columns.push_back({"reason", "reason"});
  table.columns.push_back({"subreason", "subreason"});
  table.columns.push_back({"entries", "entries", ColumnUnit::kCount});
  table.columns.push_back({"xen_s", "in Xen", ColumnUnit::kSeconds});
  for (const auto& [key, time] : sorted) {
    const auto& [thread, reason] = key;
    auto [name, subreason] = NamesOf(reason, vendor);
    std::vector<Cell> cells = words.Of(thread);
    cells.emplace_back(std::move(name));
    cells.emplace_back(std::move(subreason));
    cells.push_back(reason.kind == EntryKind::kResume ? Cell() : Cell(time.entries));
    cells.push_back(HasTime(reason.kind) ? Cell(clock.Seconds(time.time)) : Cell());
    table.AddRow(std::move(cells));
  }
  if (options.text) {
    std::vector<Cell> cells(named + 2);
    cells[0] = std::string("all threads");
    cells.emplace_back(total.entries);
    cells.push_back(total.time > 0 ? Cell(clock.Seconds(total.time)) : Cell());
    table.footers.push_back({std::move(cells)});
  }
  table.Limit(options.limit);
  return table;
}

}  // namespace xenoscope::report
