#include "guests/threads/thread_switches.h"

#include <algorithm>
#include <utility>

#include "guests/threads/container_name.h"
#include "guests/threads/numbered_name.h"

namespace xenoscope::guests {
ThreadSwitches::ThreadSwitches(std::vector<ThreadStates> domains) : domains_(std::move(domains)) {
  for (const ThreadStates& domain : domains_) running_.emplace_back(domain.vcpus().size(), 0);
  current_.resize(domains_.size());
}

std::optional<correlate::ThreadSwitch> ThreadSwitches::Next(Tsc until) {
  while (true) {
    if (!pending_.empty()) {
      const correlate::ThreadSwitch next = pending_.back();
      pending_.pop_back();
      return next;
    }
    const auto first = std::ranges::min_element(domains_, {}, &ThreadStates::next);
    if (first == domains_.end() || first->next() >= until) return std::nullopt;
    const bool is_first = first->now() == Tsc{};
    const uint32_t cpu = first->next_cpu();
    first->Take({ThreadState::kUntraced});
    const auto domain = static_cast<size_t>(first - domains_.begin());
    if (is_first) {  // then it is known who is on each CPU
      for (auto each = static_cast<uint32_t>(running_[domain].size()); each-- > 0;) {
        Compare(domain, each);
      }
    } else {
      Compare(domain, cpu);
    }
  }
}

void ThreadSwitches::Compare(size_t domain, uint32_t cpu) {
  const ThreadStates& states = domains_[domain];
  const std::optional<size_t> thread = states.ThreadOn(cpu);
  const uint32_t number = thread ? NumberOf({domain, *thread}) : 0;
  if (std::exchange(running_[domain][cpu], number) == number) return;
  pending_.push_back({{states.domain(), VcpuId{cpu}}, states.now(), number});
}

uint32_t ThreadSwitches::ContainerOf(ThreadRef thread) {
  const size_t process = At(thread).process;
  const GuestProcess& moved = domains_[thread.domain].processes()[process];
  std::vector<Container>& current = current_[thread.domain];
  if (process >= current.size()) current.resize(process + 1);
  Container& container = current[process];
  if (container.moves != moved.moves) container = {moved.moves, ContainerNumber(moved.cgroup)};
  return container.number;
}

uint32_t ThreadSwitches::ContainerNumber(const std::string& cgroup) {
  if (cgroup.empty()) return 0;
  const auto known = container_numbers_.find(cgroup);
  if (known != container_numbers_.end()) return known->second;
  if (container_numbers_.size() >= kMaxContainers) return 0;
  // Several paths may have one name: that of a container and its part.
  const std::string name = guests::ContainerName(cgroup);
  const auto same = std::ranges::find(containers_, name);
  const auto number = static_cast<uint32_t>(same - containers_.begin());
  if (same == containers_.end()) containers_.push_back(name);
  return container_numbers_[cgroup] = number;
}

uint32_t ThreadSwitches::NumberOf(ThreadRef thread) {
  const uint32_t container = ContainerOf(thread);
  const auto known = numbers_.find({thread, container});
  if (known != numbers_.end()) return known->second;
  if (identities_.size() > kMaxIdentities) return 0;
  const auto number_in = [&thread](auto& numbers, const auto& key, std::vector<ThreadRef>& all) {
    const auto [found, is_new] = numbers.try_emplace(key, static_cast<uint32_t>(all.size()));
    if (is_new) all.push_back(thread);
    return found->second;
  };
  const size_t process = At(thread).process;
  const bool is_known = process != 0;  // else the thread stands for its process
  const correlate::ThreadIdentity identity{
      .thread = number_in(thread_numbers_, thread, threads_),
      .process = number_in(process_numbers_,
                           std::tuple(thread.domain, is_known, is_known ? process : thread.thread),
                           processes_),
      .container = container,
      .pid = domains_[thread.domain].processes()[process].pid};
  const std::lock_guard lock(mutex_);
  const auto number = static_cast<uint32_t>(identities_.size());
  identities_.push_back(identity);
  return numbers_[{thread, container}] = number;
}

correlate::ThreadIdentity ThreadSwitches::IdentityOf(uint32_t thread) const {
  const std::lock_guard lock(mutex_);
  return identities_.at(thread);
}

std::string ThreadSwitches::ThreadName(uint32_t thread) const {
  const GuestThread& named = At(threads_.at(thread));
  return NumberedName(named.name, named.tid);
}

std::string ThreadSwitches::ProcessName(uint32_t process) const {
  const ThreadRef ref = processes_.at(process);
  const GuestThread& thread = At(ref);
  if (thread.process == 0) return thread.name;
  const GuestProcess& named = domains_[ref.domain].processes()[thread.process];
  return NumberedName(named.name, named.pid);
}

std::string ThreadSwitches::ContainerName(uint32_t container) const {
  return containers_.at(container);
}

}  // namespace xenoscope::guests
