#include "report/threads/locks_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "guests/threads/lock_waits.h"
#include "report/threads/span_figures.h"
#include "report/threads/thread_words.h"

namespace xenoscope::report {
namespace {

using guests::LockWait;

// LCB_F_... of include/trace/events/lock.h.
constexpr uint32_t kSpin = 1;
constexpr uint32_t kRead = 2;
constexpr uint32_t kWrite = 4;
constexpr uint32_t kRealTime = 8;
constexpr uint32_t kPerCpu = 16;
constexpr uint32_t kMutex = 32;

struct NamedLockType {
  uint32_t flags;
  const char* name;
};
// As tools/perf/builtin-lock.c has them.
constexpr NamedLockType kLockTypes[] = {
    {0, "semaphore"},
    {kSpin, "spinlock"},
    {kSpin | kRead, "rwlock:R"},
    {kSpin | kWrite, "rwlock:W"},
    {kRead, "rwsem:R"},
    {kWrite, "rwsem:W"},
    {kRealTime, "rt-mutex"},
    {kRealTime | kRead, "rwlock-rt:R"},
    {kRealTime | kWrite, "rwlock-rt:W"},
    {kPerCpu | kRead, "pcpu-sem:R"},
    {kPerCpu | kWrite, "pcpu-sem:W"},
    {kMutex, "mutex"},
    {kMutex | kSpin, "mutex"},
};

void AddWait(const LockWait& wait, LockWait& to) {
  to.waits += wait.waits;
  to.failed += wait.failed;
  to.cut += wait.cut;
  guests::AddTo(to.times, wait.times);
  to.longest = std::max(to.longest, wait.longest);
  to.others_stolen += wait.others_stolen;
}

// The columns after what a row stands for.
class LockFigures {
 public:
  LockFigures(Clock clock, const ThreadsOptions& options, const LockWait& total)
      : clock_(clock),
        spans_(clock, options, total.times),
        has_failed_(!options.text || total.failed > 0),
        has_cut_(!options.text || total.cut > 0) {}
  void AddColumns(std::vector<Column>& columns) const {
    columns.push_back({"contentions", "contentions", ColumnUnit::kCount});
    if (has_failed_) columns.push_back({"failed", "failed", ColumnUnit::kCount});
    if (has_cut_) columns.push_back({"cut", "cut", ColumnUnit::kCount});
    SpanFigures::AddLengthColumns(columns);
    columns.push_back({"others_stolen_s", "others stolen", ColumnUnit::kSeconds});
    spans_.AddStateColumns(columns);
  }
  void AddCells(const LockWait& wait, std::vector<Cell>& cells) const {
    cells.emplace_back(wait.waits);
    if (has_failed_) cells.emplace_back(wait.failed);
    if (has_cut_) cells.emplace_back(wait.cut);
    spans_.AddLengths(wait.times, wait.waits, wait.longest, cells);
    cells.emplace_back(clock_.Seconds(wait.others_stolen));
    spans_.AddStates(wait.times, cells);
  }

 private:
  Clock clock_;
  SpanFigures spans_;
  bool has_failed_;
  bool has_cut_;
};

// Thread, address of the lock, type.
using LockKey = std::tuple<ThreadKey, uint64_t, std::string>;

}  // namespace

std::string LockType(uint32_t flags) {
  if (flags == guests::kUnknownLock) return "-";
  const auto* const found = std::ranges::find(kLockTypes, flags, &NamedLockType::flags);
  return found == std::end(kLockTypes) ? fmt::format("flags {:#x}", flags) : found->name;
}

Table LocksTable(std::span<const guests::ThreadStates> domains,
                 const std::function<std::string(DomainId)>& name_of, Clock clock,
                 const ThreadsOptions& options) {
  std::map<LockKey, LockWait> rows;
  LockWait total;
  for (const guests::ThreadStates& domain : domains) {
    for (const LockWait& wait : domain.Locks()) {
      const ThreadKey key = KeyOf(domain, domain.threads()[wait.thread], options.by);
      AddWait(wait, rows[{key, wait.lock, LockType(wait.flags)}]);
      AddWait(wait, total);
    }
  }
  std::vector<std::pair<LockKey, LockWait>> sorted(rows.begin(), rows.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), [](const auto& row) {
    return std::pair(guests::Sum(row.second.times), row.second.waits);
  });
  const ThreadWords words(name_of, options);
  const LockFigures figures(clock, options, total);
  Table table;
  table.columns = words.Columns();
  const size_t named = table.columns.size();
  table.columns.push_back({"lock", "lock"});
  table.columns.push_back({"type", "type"});
  figures.AddColumns(table.columns);
  for (const auto& [key, wait] : sorted) {
    std::vector<Cell> cells = words.Of(std::get<0>(key));
    cells.emplace_back(std::get<1>(key) == 0 ? std::string("-")
                                             : fmt::format("{:#x}", std::get<1>(key)));
    cells.emplace_back(std::get<2>(key));
    figures.AddCells(wait, cells);
    table.AddRow(std::move(cells));
  }
  if (options.text) {
    std::vector<Cell> cells(named + 2);
    cells[0] = std::string("all threads");
    figures.AddCells(total, cells);
    table.footers.push_back({std::move(cells)});
  }
  table.Limit(options.limit);
  return table;
}

}  // namespace xenoscope::report
