// The threads that vCPUs of domains run, for joining them with samples: each switch of threads in
// the order of time, and what the threads are called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/tsc.h"
#include "correlate/thread_source.h"
#include "guests/threads/thread_states.h"

namespace xenoscope::guests {

class ThreadSwitches final : public correlate::ThreadSource {
 public:
  // `domains` have taken no events yet.
  explicit ThreadSwitches(std::vector<ThreadStates> domains);

  // A thread that moves to another container, or that events were lost of, is a switch, too. O(log
  // CPUs) for each event.
  std::optional<correlate::ThreadSwitch> Next(Tsc until) override;
  [[nodiscard]] correlate::ThreadIdentity IdentityOf(uint32_t thread) const override;
  [[nodiscard]] std::string ThreadName(uint32_t thread) const override;
  [[nodiscard]] std::string ProcessName(uint32_t process) const override;
  [[nodiscard]] std::string ContainerName(uint32_t container) const override;

  // The numbers that are told apart of threads in their containers, and of containers. What comes
  // later is not known.
  static constexpr size_t kMaxIdentities = size_t{1} << 20;
  static constexpr size_t kMaxContainers = size_t{1} << 14;

 private:
  // A thread of a domain, or a process by one of its threads: indices.
  struct ThreadRef {
    size_t domain = 0;
    size_t thread = 0;
    constexpr auto operator<=>(const ThreadRef&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const ThreadRef& ref) {
      return H::combine(std::move(h), ref.domain, ref.thread);
    }
  };

  // Notes a switch if another thread than before is on the CPU.
  void Compare(size_t domain, uint32_t cpu);
  // Returns the number of the thread in its container, which may be a new one; 0: not known.
  uint32_t NumberOf(ThreadRef thread);
  uint32_t ContainerOf(ThreadRef thread);
  uint32_t ContainerNumber(const std::string& cgroup);
  [[nodiscard]] const GuestThread& At(ThreadRef ref) const {
    return domains_[ref.domain].threads()[ref.thread];
  }

  std::vector<ThreadStates> domains_;
  std::vector<correlate::ThreadSwitch> pending_;  // of one instant, each of another CPU
  // The container of a process since it was moved so often.
  struct Container {
    uint32_t moves = ~uint32_t{0};
    uint32_t number = 0;
  };
  std::vector<std::vector<uint32_t>> running_;   // by domain and CPU: what was told last
  std::vector<std::vector<Container>> current_;  // by domain and process
  absl::flat_hash_map<std::tuple<ThreadRef, uint32_t>, uint32_t> numbers_;  // by container
  absl::flat_hash_map<ThreadRef, uint32_t> thread_numbers_;
  absl::flat_hash_map<std::tuple<size_t, bool, size_t>, uint32_t> process_numbers_;
  absl::flat_hash_map<std::string, uint32_t> container_numbers_;
  // By number; of 0 nothing is known.
  std::vector<ThreadRef> threads_ = std::vector<ThreadRef>(1);
  std::vector<ThreadRef> processes_ = std::vector<ThreadRef>(1);
  std::vector<std::string> containers_ = std::vector<std::string>(1);
  mutable std::mutex mutex_;  // of identities_
  std::vector<correlate::ThreadIdentity> identities_ = std::vector<correlate::ThreadIdentity>(1);
};

}  // namespace xenoscope::guests
