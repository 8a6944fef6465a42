// Numbers the vCPUs that are met, so that what is kept of each is found by an index. Timelines of
// parts of a trace, on threads of their own, share one numbering.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"

namespace xenoscope::correlate {

class VcpuIndex {
 public:
  // More vCPUs than this get no numbers of their own.
  static constexpr uint32_t kMaxVcpus = 65536;

  // The vCPU's number, dense from 0 in the order of first calls; kMaxVcpus when there is none left.
  // O(1), under a lock: to be asked once for each vCPU.
  uint32_t IndexOf(VcpuRef vcpu) {
    const std::lock_guard lock(mutex_);
    if (refs_.size() == kMaxVcpus) {
      const auto found = numbers_.find(vcpu);
      return found == numbers_.end() ? kMaxVcpus : found->second;
    }
    const auto [entry, is_new] = numbers_.try_emplace(vcpu, static_cast<uint32_t>(refs_.size()));
    if (is_new) refs_.push_back(vcpu);
    return entry->second;
  }
  // All vCPUs that have numbers now, by number.
  std::vector<VcpuRef> All() const {
    const std::lock_guard lock(mutex_);
    return refs_;
  }

 private:
  mutable std::mutex mutex_;
  absl::flat_hash_map<VcpuRef, uint32_t> numbers_;
  std::vector<VcpuRef> refs_;
};

}  // namespace xenoscope::correlate
