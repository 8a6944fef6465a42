// The part of an object's state that matters for what it does afterwards, as words: two objects
// with the same words behave alike from there on.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/ids.h"
#include "base/tsc.h"

namespace xenoscope {

class StateSnapshot {
 public:
  // Adds each value in turn. Objects that are compared add the same things in the same order.
  template <typename... Values>
  void Add(const Values&... values) {
    (Append(values), ...);
  }
  bool operator==(const StateSnapshot&) const = default;

 private:
  template <typename T>
  void Append(const T& value) {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
    words_.push_back(static_cast<uint64_t>(value));
  }
  void Append(Tsc tsc) { words_.push_back(tsc.value); }
  void Append(PcpuId pcpu) { words_.push_back(pcpu.value); }
  void Append(VcpuRef vcpu) { Add(vcpu.domain.value, vcpu.vcpu.value); }
  template <typename T>
  void Append(const std::optional<T>& value) {
    Append(value.has_value());
    if (value) Append(*value);
  }

  std::vector<uint64_t> words_;
};

}  // namespace xenoscope
