#include "report/threads/thread_words.h"

#include "guests/threads/container_name.h"

namespace xenoscope::report {

ThreadKey KeyOf(const guests::ThreadStates& domain, const guests::GuestThread& thread,
                ThreadsBy by) {
  const guests::GuestProcess& process = domain.processes()[thread.process];
  ThreadKey key{domain.domain(), "", "", 0, "", 0};
  if (by == ThreadsBy::kDomain) return key;
  std::get<1>(key) = guests::ContainerName(process.cgroup);
  if (by == ThreadsBy::kContainer) return key;
  const bool is_idle = thread.tid == 0;
  std::get<2>(key) = process.pid == 0 ? thread.name : process.name;
  std::get<3>(key) = process.pid;
  if (by == ThreadsBy::kProcess) return key;
  std::get<4>(key) = thread.name;
  if (!is_idle) std::get<5>(key) = thread.tid;
  return key;
}

std::vector<Column> ThreadWords::Columns(const std::string& key_prefix,
                                         const std::string& title_prefix) const {
  // Numbers of processes and threads are names: text has no thousands separators in them.
  const ColumnUnit number = options_.text ? ColumnUnit::kText : ColumnUnit::kCount;
  std::vector<Column> columns;
  const auto add = [&](const char* name, ColumnUnit unit = ColumnUnit::kText) {
    columns.push_back({key_prefix + name, title_prefix + name, unit});
  };
  add("domain");
  if (options_.by != ThreadsBy::kDomain) add("container");
  if (options_.by <= ThreadsBy::kProcess) {
    add("process");
    add("pid", number);
  }
  if (options_.by == ThreadsBy::kThread) {
    add("thread");
    add("tid", number);
  }
  return columns;
}

std::vector<Cell> ThreadWords::Of(const ThreadKey& key) const {
  const auto& [domain, container, process, pid, thread, tid] = key;
  std::vector<Cell> cells{DomainLabel(domain, name_of_(domain))};
  if (options_.by != ThreadsBy::kDomain) cells.emplace_back(container);
  if (options_.by <= ThreadsBy::kProcess) {
    cells.emplace_back(process);
    cells.push_back(Number(pid));
  }
  if (options_.by == ThreadsBy::kThread) {
    cells.emplace_back(thread);
    cells.push_back(Number(tid));
  }
  return cells;
}

Cell ThreadWords::Number(uint32_t id) const {
  if (id == 0) return {};
  return options_.text ? Cell(std::to_string(id)) : Cell(uint64_t{id});
}

}  // namespace xenoscope::report
