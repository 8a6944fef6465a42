// Numbers the vCPUs that are met, so that what is kept for each is found by an index. Timelines of
// parts of a trace, each on a thread, share one numbering.
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
  // The number of vCPUs that get a number of their own.
  static constexpr uint32_t kMaxVcpus = 65536;

  // Returns the vCPU's number, which count up from 0 in the order of first calls; kMaxVcpus when
  // none is left. O(1), under a lock: to be called once for each vCPU.
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
  // Returns all vCPUs that have numbers now, by number.
  [[nodiscard]] std::vector<VcpuRef> All() const {
    const std::lock_guard lock(mutex_);
    return refs_;
  }

 private:
  mutable std::mutex mutex_;
  absl::flat_hash_map<VcpuRef, uint32_t> numbers_;
  std::vector<VcpuRef> refs_;
};

}  // namespace xenoscope::correlate
