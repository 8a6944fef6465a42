// One T for every vCPU that the timeline has met, by its dense index.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"

namespace xenoscope::analysis {

template <typename T>
class PerVcpu {
 public:
  // O(1); creates the T at the first call for the index. References stay valid.
  T& At(uint32_t index, VcpuRef ref) {
    if (index >= slots_.size()) slots_.resize(index + 1);
    auto& slot = slots_[index];
    if (slot == nullptr) [[unlikely]] {
      slot = std::make_unique<Slot>();
      slot->ref = ref;
    }
    return slot->value;
  }
  // The T of the vCPU, or null. O(vCPUs): for describing, not for counting.
  const T* Find(VcpuRef ref) const {
    for (const auto& slot : slots_) {
      if (slot != nullptr && slot->ref == ref) return &slot->value;
    }
    return nullptr;
  }

 private:
  struct Slot {
    VcpuRef ref;
    T value;
  };
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace xenoscope::analysis
