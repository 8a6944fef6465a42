// What threads, processes, containers and domains are called in tables of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "base/ids.h"
#include "guests/threads/thread_states.h"
#include "report/table/table.h"
#include "report/threads/threads_view.h"

namespace xenoscope::report {

// Domain, container, process with its number, thread with its number: empty where rows join them.
using ThreadKey = std::tuple<DomainId, std::string, std::string, uint32_t, std::string, uint32_t>;

// Returns what the thread's row stands for.
[[nodiscard]] ThreadKey KeyOf(const guests::ThreadStates& domain, const guests::GuestThread& thread,
                              ThreadsBy by);

// The columns that say what a row stands for.
class ThreadWords {
 public:
  // `name_of` outlives this.
  ThreadWords(const std::function<std::string(DomainId)>& name_of, const ThreadsOptions& options)
      : name_of_(name_of), options_(options) {}

  // The prefixes are of the columns' keys and titles.
  [[nodiscard]] std::vector<Column> Columns(const std::string& key_prefix = "",
                                            const std::string& title_prefix = "") const;
  [[nodiscard]] std::vector<Cell> Of(const ThreadKey& key) const;

 private:
  [[nodiscard]] Cell Number(uint32_t id) const;

  const std::function<std::string(DomainId)>& name_of_;
  ThreadsOptions options_;
};

}  // namespace xenoscope::report
