// A container with one T for every vCPU that the timeline has met, by the vCPU's dense index.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"

namespace xenoscope::analysis {

template <typename T>
class PerVcpu {
 public:
  // Returns the T of the index, created at the first call. O(1). References stay valid.
  T& At(uint32_t index, VcpuRef ref) {
    if (T* known = Known(index)) [[likely]] {
      return *known;
    }
    return Make(index, ref);
  }
  // Returns the T of the index, or null. O(1).
  [[nodiscard]] T* Known(uint32_t index) const { return index < size_ ? values_[index] : nullptr; }
  // Returns the T of the vCPU, or null. It hashes: for describing, not for counting.
  [[nodiscard]] const T* Find(VcpuRef ref) const {
    const auto found = by_ref_.find(ref);
    return found == by_ref_.end() ? nullptr : &slots_[found->second]->value;
  }
  // Returns all values, by vCPU.
  [[nodiscard]] std::map<VcpuRef, const T*> ByRef() const {
    std::map<VcpuRef, const T*> all;
    ForEach([&all](VcpuRef ref, const T& value) { all[ref] = &value; });
    return all;
  }
  [[nodiscard]] bool Empty() const { return slots_.empty(); }
  // Calls visit(VcpuRef, T&) for each value, by index.
  template <std::invocable<VcpuRef, T&> Visit>
  void ForEach(Visit&& visit) {
    for (const auto& slot : slots_) {
      if (slot != nullptr) visit(slot->ref, slot->value);
    }
  }
  template <std::invocable<VcpuRef, const T&> Visit>
  void ForEach(Visit&& visit) const {
    for (const auto& slot : slots_) {
      if (slot != nullptr) visit(slot->ref, std::as_const(slot->value));
    }
  }
  // Calls merge(T& mine, T& others) for each vCPU that either container has, with a new T where one
  // has none. The indices of both must mean the same vCPUs (correlate::VcpuIndex).
  template <std::invocable<T&, T&> Merge>
  void MergeFrom(PerVcpu& other, Merge&& merge) {
    const size_t size = std::max(slots_.size(), other.slots_.size());
    for (uint32_t index = 0; index < size; ++index) {
      const Slot* slot = SlotOf(index) != nullptr ? SlotOf(index) : other.SlotOf(index);
      if (slot == nullptr) continue;
      const VcpuRef ref = slot->ref;
      merge(At(index, ref), other.At(index, ref));
    }
  }

 private:
  struct Slot {
    VcpuRef ref;
    T value;
  };
  [[nodiscard]] const Slot* SlotOf(uint32_t index) const {
    return index < slots_.size() ? slots_[index].get() : nullptr;
  }
  // A function of its own, so that At() stays small enough to be inlined.
  [[gnu::noinline]] T& Make(uint32_t index, VcpuRef ref) {
    if (index >= slots_.size()) {
      slots_.resize(index + 1);
      values_.resize(index + 1);
      size_ = index + 1;
    }
    slots_[index] = std::make_unique<Slot>();
    slots_[index]->ref = ref;
    values_[index] = &slots_[index]->value;
    by_ref_.emplace(ref, index);
    return slots_[index]->value;
  }
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<T*> values_;  // pointers into the slots; null: not made yet
  uint32_t size_ = 0;       // size of values_: quicker to compare with than the vector's
  absl::flat_hash_map<VcpuRef, uint32_t> by_ref_;
};

}  // namespace xenoscope::analysis
