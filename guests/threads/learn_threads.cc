#include "guests/threads/learn_threads.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"

namespace xenoscope::guests {

void LearnThreads(const ThreadStates& domain, KernelTraceBegin& begin) {
  absl::flat_hash_set<uint32_t> ended;
  for (const KernelTraceBegin::Thread& thread : begin.threads()) {
    if (thread.has_ended) ended.insert(thread.tid);
  }
  absl::flat_hash_set<uint32_t> known;
  std::vector<KernelTraceBegin::Thread> threads;
  std::vector<bool> is_left(domain.processes().size());
  for (size_t i = domain.threads().size(); i-- > 0;) {
    const GuestThread& thread = domain.threads()[i];
    const bool has_ended = domain.HasEnded(i);
    if (thread.tid == 0 || thread.process == 0 || !known.insert(thread.tid).second) continue;
    if (ended.contains(thread.tid) && !has_ended && Sum(thread.times) == 0) continue;
    threads.push_back({.pid = domain.processes()[thread.process].pid,
                       .tid = thread.tid,
                       .name = thread.name,
                       .has_ended = has_ended});
    is_left[thread.process] = true;
  }
  std::vector<KernelTraceBegin::Process> processes;
  for (size_t i = 0; i < is_left.size(); ++i) {
    const GuestProcess& process = domain.processes()[i];
    if (is_left[i] && !process.cgroup.empty()) processes.push_back({process.pid, process.cgroup});
  }
  begin.Set(std::move(threads), std::move(processes));
}

}  // namespace xenoscope::guests
