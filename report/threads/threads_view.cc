#include "report/threads/threads_view.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "guests/threads/numbered_name.h"
#include "report/threads/thread_words.h"

namespace xenoscope::report {
namespace {

using guests::StateTimes;
using guests::ThreadState;

constexpr std::array<StateColumn, guests::kThreadStates> kStates{{
    {ThreadState::kGuest, "guest_s", "guest"},
    {ThreadState::kXen, "xen_s", "in Xen"},
    {ThreadState::kStolen, "stolen_s", "stolen"},
    {ThreadState::kHalted, "halted_s", "halted"},
    {ThreadState::kUntraced, "untraced_s", "untraced"},
    {ThreadState::kVcpuLost, "vcpu_lost_s", "trace lost"},
    {ThreadState::kWoken, "woken_s", "woken"},
    {ThreadState::kPreempted, "preempted_s", "preempted"},
    {ThreadState::kSleeping, "sleeping_s", "sleeping"},
    {ThreadState::kUninterruptible, "uninterruptible_s", "uninterr."},
    {ThreadState::kLost, "lost_s", "events lost"},
}};

struct Row {
  StateTimes times{};
  uint64_t switches = 0;
  uint64_t preempted = 0;
  uint64_t migrations = 0;

  [[nodiscard]] Cycles OnVcpus() const {
    Cycles sum = 0;
    for (const StateColumn& column : kStates) {
      if (guests::IsOnVcpu(column.state)) sum += times[static_cast<size_t>(column.state)];
    }
    return sum;
  }
};

void Add(const StateTimes& times, StateTimes& to) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += times[i];
}

std::map<ThreadKey, Row> RowsOf(std::span<const guests::ThreadStates> domains, ThreadsBy by) {
  std::map<ThreadKey, Row> rows;
  for (const guests::ThreadStates& domain : domains) {
    for (const guests::GuestThread& thread : domain.threads()) {
      Row& row = rows[KeyOf(domain, thread, by)];
      Add(thread.times, row.times);
      row.switches += thread.switches;
      row.preempted += thread.preempted;
      row.migrations += thread.migrations;
    }
  }
  return rows;
}

// The table in the making: which columns there are depends on what rows have.
class Builder {
 public:
  Builder(const ThreadWords& words, Clock clock, bool all, const StateTimes& sums)
      : words_(words), clock_(clock) {
    for (const StateColumn& column : kStates) {
      if (all || sums[static_cast<size_t>(column.state)] > 0) shown_.push_back(&column);
    }
    AddColumns();
  }

  void AddRow(const ThreadKey& key, const Row& row) {
    std::vector<Cell> cells = words_.Of(key);
    AddFigures(row, cells);
    table_.AddRow(std::move(cells));
  }

  void AddFooter(const char* what, const Row& row) {
    std::vector<Cell> cells(words_.Columns().size());
    cells[0] = std::string(what);
    AddFigures(row, cells);
    table_.footers.push_back({std::move(cells)});
  }

  Table Take() { return std::move(table_); }

 private:
  void AddColumns() {
    std::vector<Column>& columns = table_.columns;
    columns = words_.Columns();
    columns.push_back({"on_vcpu_s", "on vCPUs", ColumnUnit::kSeconds});
    for (const StateColumn* column : shown_) {
      columns.push_back({column->key, column->title, ColumnUnit::kSeconds});
    }
    columns.push_back({"switches", "switches", ColumnUnit::kCount});
    columns.push_back({"preemptions", "preemptions", ColumnUnit::kCount});
    columns.push_back({"migrations", "migrations", ColumnUnit::kCount});
  }

  void AddFigures(const Row& row, std::vector<Cell>& cells) const {
    cells.emplace_back(clock_.Seconds(row.OnVcpus()));
    for (const StateColumn* column : shown_) {
      cells.emplace_back(clock_.Seconds(row.times[static_cast<size_t>(column->state)]));
    }
    cells.emplace_back(row.switches);
    cells.emplace_back(row.preempted);
    cells.emplace_back(row.migrations);
  }

  const ThreadWords& words_;
  Clock clock_;
  std::vector<const StateColumn*> shown_;
  Table table_;
};

// What a row of waits stands for.
struct WaitKey {
  struct By {
    guests::Scheduler scheduler = guests::Scheduler::kXen;
    ThreadKey thread;
    auto operator<=>(const By&) const = default;
  };
  ThreadKey thread;
  guests::WaitState state = guests::WaitState::kStolen;
  std::optional<By> by{};  // nothing: nobody that is known

  auto operator<=>(const WaitKey&) const = default;
};

// Returns the cells of the scheduler and of the culprit.
std::vector<Cell> CulpritCells(const std::optional<WaitKey::By>& by, const ThreadWords& words) {
  if (!by) {
    std::vector<Cell> cells(1 + words.Columns().size());
    cells[0] = std::string("-");
    cells[1] = std::string("-");
    return cells;
  }
  std::vector<Cell> cells{std::string(by->scheduler == guests::Scheduler::kXen ? "Xen" : "kernel")};
  std::ranges::move(words.Of(by->thread), std::back_inserter(cells));
  return cells;
}

// Returns "web (7)", the text of a report's row for the same thread, process or container.
std::string CulpritLabel(const ThreadKey& key, ThreadsBy by) {
  const auto& [domain, container, process, pid, thread, tid] = key;
  if (by == ThreadsBy::kThread) return guests::NumberedName(thread, tid);
  if (by == ThreadsBy::kProcess) return guests::NumberedName(process, pid);
  return by == ThreadsBy::kContainer ? container : "";
}

// Returns the cells of the culprit's function.
std::vector<Cell> FunctionCells(const WaitKey& wait, ThreadsBy rows,
                                const HotFunctions& functions) {
  std::vector<Cell> none(4);
  if (!wait.by) return none;
  HotFunctionKey of{.waiting = {},
                    .domain = std::get<DomainId>(wait.by->thread),
                    .label = CulpritLabel(wait.by->thread, rows)};
  if (wait.by->scheduler == guests::Scheduler::kXen) of.waiting = std::get<DomainId>(wait.thread);
  const auto found = functions.find(of);
  if (found == functions.end()) return none;
  const HotFunction& hot = found->second;
  return {hot.function, hot.share, hot.low, hot.high};
}

// By guests::WaitState: the states of threads that have culprits, and their names.
constexpr std::array<ThreadState, guests::kWaitStates> kWaitStates{
    ThreadState::kStolen, ThreadState::kWoken, ThreadState::kPreempted};
constexpr std::array<const char*, guests::kWaitStates> kWaitNames{"stolen", "woken", "preempted"};

// Returns what the culprit is called, as far as its domain's threads are known.
ThreadKey KeyOf(const guests::Culprit& culprit, std::span<const guests::ThreadStates> domains,
                ThreadsBy by) {
  const auto domain = std::ranges::find(domains, culprit.domain, &guests::ThreadStates::domain);
  if (domain == domains.end() || culprit.thread == guests::Culprit::kNoThread) {
    return {culprit.domain, "", "", 0, "", 0};
  }
  return KeyOf(*domain, domain->threads()[culprit.thread], by);
}

absl::Status AddWaits(const guests::ThreadStates& domain,
                      std::span<const guests::ThreadStates> domains, ThreadsBy by,
                      std::map<WaitKey, Cycles>& rows) {
  // By thread and state: what was taken by nobody that is known.
  std::vector<std::array<Cycles, guests::kWaitStates>> rest(domain.threads().size());
  for (size_t i = 0; i < rest.size(); ++i) {
    for (size_t state = 0; state < guests::kWaitStates; ++state) {
      rest[i][state] = domain.threads()[i].times[static_cast<size_t>(kWaitStates[state])];
    }
  }
  for (const guests::Wait& wait : domain.Waits()) {
    const guests::GuestThread& thread = domain.threads()[wait.thread];
    Cycles& left = rest[wait.thread][static_cast<size_t>(wait.state)];
    if (wait.time > left) {
      return InternalError("{}: {} cycles were taken from the thread {} while it was {}, of {}",
                           ToString(domain.domain()), wait.time, thread.tid,
                           kWaitNames.at(static_cast<size_t>(wait.state)), left);
    }
    left -= wait.time;
    rows[{KeyOf(domain, thread, by), wait.state,
          WaitKey::By{wait.scheduler, KeyOf(wait.by, domains, by)}}] += wait.time;
  }
  for (size_t i = 0; i < rest.size(); ++i) {
    const ThreadKey key = KeyOf(domain, domain.threads()[i], by);
    for (size_t state = 0; state < guests::kWaitStates; ++state) {
      if (rest[i][state] == 0) continue;
      rows[{key, static_cast<guests::WaitState>(state), std::nullopt}] += rest[i][state];
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::span<const StateColumn> StateColumns() { return kStates; }

const char* StateTitle(ThreadState state) {
  return std::ranges::find(kStates, state, &StateColumn::state)->title;
}

Table ThreadsTable(std::span<const guests::ThreadStates> domains,
                   const std::function<std::string(DomainId)>& name_of, Clock clock,
                   const ThreadsOptions& options) {
  std::vector<std::pair<ThreadKey, Row>> rows;
  Row total;
  for (auto& [key, row] : RowsOf(domains, options.by)) {
    Add(row.times, total.times);
    total.switches += row.switches;
    total.preempted += row.preempted;
    total.migrations += row.migrations;
    if (row.OnVcpus() > 0) rows.emplace_back(key, row);
  }
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const auto& row) { return row.second.OnVcpus(); });
  const ThreadWords words(name_of, options);
  Builder builder(words, clock, !options.text, total.times);
  for (const auto& [key, row] : rows) builder.AddRow(key, row);
  if (options.text) {
    builder.AddFooter("all threads", total);
    Row vcpus;
    for (const guests::ThreadStates& domain : domains) {
      for (const guests::GuestVcpu& vcpu : domain.vcpus()) Add(vcpu.times, vcpus.times);
    }
    Row lost;
    lost.times[static_cast<size_t>(ThreadState::kLost)] =
        vcpus.times[static_cast<size_t>(ThreadState::kLost)];
    if (lost.times[static_cast<size_t>(ThreadState::kLost)] > 0) {
      builder.AddFooter("vCPUs whose thread is not known", lost);
    }
  }
  Table table = builder.Take();
  table.Limit(options.limit);
  return table;
}

absl::StatusOr<Table> CulpritsTable(std::span<const guests::ThreadStates> domains,
                                    const std::function<std::string(DomainId)>& name_of,
                                    Clock clock, const ThreadsOptions& options,
                                    const HotFunctions* functions) {
  std::map<WaitKey, Cycles> rows;
  for (const guests::ThreadStates& domain : domains) {
    XENOSCOPE_RETURN_IF_ERROR(AddWaits(domain, domains, options.by, rows));
  }
  std::vector<std::pair<WaitKey, Cycles>> sorted(rows.begin(), rows.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(),
                           [](const auto& row) { return row.second; });
  const ThreadWords words(name_of, options);
  Table table;
  table.columns = words.Columns();
  table.columns.push_back({"state", "state"});
  table.columns.push_back({"scheduler", "scheduler"});
  std::ranges::move(words.Columns("by_", "by "), std::back_inserter(table.columns));
  table.columns.push_back({"time_s", "time", ColumnUnit::kSeconds});
  if (functions != nullptr) {
    table.columns.push_back({"function", "hottest function"});
    table.columns.push_back({"share", "share", ColumnUnit::kShare});
    table.columns.push_back({"low", "low", ColumnUnit::kShare, Shorten::kMiddle, Narrow::kFold});
    table.columns.push_back({"high", "high", ColumnUnit::kShare});
  }
  for (const auto& [key, time] : sorted) {
    std::vector<Cell> cells = words.Of(key.thread);
    cells.emplace_back(kWaitNames.at(static_cast<size_t>(key.state)));
    std::ranges::move(CulpritCells(key.by, words), std::back_inserter(cells));
    cells.emplace_back(clock.Seconds(time));
    if (functions != nullptr) {
      std::ranges::move(FunctionCells(key, options.by, *functions), std::back_inserter(cells));
    }
    table.AddRow(std::move(cells));
  }
  table.Limit(options.limit);
  return table;
}

}  // namespace xenoscope::report
