// Follows which thread each vCPU runs, as far back as its running interval that is not complete.
//
// Memory: the switches of threads within one running interval of each vCPU.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/step_history.h"
#include "correlate/thread_source.h"

namespace xenoscope::correlate {

class RunningThreads {
 public:
  // `source` may be null: no threads are known. Else it outlives this.
  explicit RunningThreads(ThreadSource* source) : source_(source) {}

  // Whether there is anything to know.
  [[nodiscard]] bool known() const { return source_ != nullptr; }

  // Takes the switches before `until`. O(1) for each.
  void Advance(Tsc until) {
    if (source_ != nullptr) [[unlikely]] {
      TakeUntil(until);
    }
  }

  // Returns the vCPU's thread at the time of the last Advance; 0: not known. O(1).
  [[nodiscard]] uint32_t Now(VcpuRef vcpu) const {
    if (source_ == nullptr) return 0;
    const auto found = vcpus_.find(vcpu);
    return found == vcpus_.end() ? 0 : found->second.Now();
  }

  // Calls visit(part, thread) for the parts of the range in which the vCPU's kernel had put
  // different threads on it. Switches before the time of the last Forget are not known any more.
  template <typename Visitor>
  void ForEach(VcpuRef vcpu, TscRange range, Visitor visit) const {
    const auto found = vcpus_.find(vcpu);
    if (found != vcpus_.end()) return found->second.ForEach(range, visit);
    if (!range.Empty()) visit(range, uint32_t{0});
  }

  // Forgets the vCPU's switches before `t`.
  void Forget(VcpuRef vcpu, Tsc t) {
    if (source_ == nullptr) return;
    const auto found = vcpus_.find(vcpu);
    if (found != vcpus_.end()) found->second.Forget(t);
  }

 private:
  // Not inlined: the caller has a record each time, and mostly there is no source.
  [[gnu::noinline]] void TakeUntil(Tsc until) {
    while (const std::optional<ThreadSwitch> change = source_->Next(until)) {
      vcpus_[change->vcpu].Add(change->at, change->thread);
    }
  }

  ThreadSource* source_;
  absl::flat_hash_map<VcpuRef, StepHistory> vcpus_;
};

}  // namespace xenoscope::correlate
