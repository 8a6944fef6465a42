#include "report/threads/top_threads_view.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

#include "report/threads/thread_words.h"

namespace xenoscope::report {
namespace {

using guests::StateTimes;
using guests::ThreadState;

Cycles TimeIn(const StateTimes& times, std::initializer_list<ThreadState> states) {
  Cycles sum = 0;
  for (const ThreadState state : states) sum += times[static_cast<size_t>(state)];
  return sum;
}

// The vCPU ran for the thread, as far as that is known: without Xen's trace its kernel says so.
Cycles RanFor(const StateTimes& times) {
  return TimeIn(times, {ThreadState::kGuest, ThreadState::kXen, ThreadState::kUntraced});
}

Cycles QueuedFor(const StateTimes& times) {
  return TimeIn(times, {ThreadState::kWoken, ThreadState::kPreempted});
}

}  // namespace

Table TopThreadsTable(std::span<const guests::ThreadStates> domains,
                      const guests::TimesWithin& times,
                      const std::function<std::string(DomainId)>& name_of, ThreadsBy by,
                      std::optional<DomainId> only) {
  std::map<ThreadKey, StateTimes> sums;
  for (const guests::ThreadStates& domain : domains) {
    if (only && domain.domain() != *only) continue;
    for (size_t i = 0; i < domain.threads().size(); ++i) {
      const guests::GuestThread& thread = domain.threads()[i];
      if (thread.tid == 0 && domain.IsIdleThread(i)) continue;
      const StateTimes own = times.Of(domain.domain(), i);
      if (RanFor(own) + QueuedFor(own) + TimeIn(own, {ThreadState::kStolen}) == 0) continue;
      guests::AddTo(sums[KeyOf(domain, thread, by)], own);
    }
  }
  std::vector<std::pair<ThreadKey, StateTimes>> rows(sums.begin(), sums.end());
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const auto& row) { return RanFor(row.second); });
  const ThreadWords words(name_of, {.by = by, .text = true, .limit = 0});
  Table table;
  table.columns = words.Columns();
  for (const auto& [key, title] : {std::pair("cpu", "cpu"),
                                   {"xen", "in Xen"},
                                   {"stolen", "stolen"},
                                   {"queued", "queued"},
                                   {"uninterruptible", "uninterr."},
                                   {"lost", "lost"}}) {
    table.columns.push_back({key, title, ColumnUnit::kShare});
  }
  const auto window = static_cast<double>(times.range().Length());
  for (const auto& [key, own] : rows) {
    std::vector<Cell> cells = words.Of(key);
    for (const Cycles time :
         {RanFor(own), TimeIn(own, {ThreadState::kXen}), TimeIn(own, {ThreadState::kStolen}),
          QueuedFor(own), TimeIn(own, {ThreadState::kUninterruptible}),
          TimeIn(own, {ThreadState::kVcpuLost, ThreadState::kLost})}) {
      cells.emplace_back(window > 0 ? static_cast<double>(time) / window : 0);
    }
    table.AddRow(std::move(cells));
  }
  return table;
}

}  // namespace xenoscope::report
