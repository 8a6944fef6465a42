// The call stacks that samples had, each once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/mode.h"
#include "base/resolver.h"
#include "correlate/placing.h"

namespace xenoscope::correlate {

struct StackFrame {
  FunctionId function;
  Mode mode = Mode::kUser;
  // Of the code that was running or had made a call: inside the call, where that is how it got
  // here. 0 where stacks are not told apart by it.
  Address address = 0;

  constexpr bool operator==(const StackFrame&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const StackFrame& frame) {
    return H::combine(std::move(h), frame.function.value, frame.mode, frame.address);
  }
};

using Stack = std::vector<StackFrame>;  // innermost first

// Memory: the stacks that differ.
class Stacks {
 public:
  // Stacks that differ in addresses only are one, unless `by_address`.
  explicit Stacks(bool by_address) : by_address_(by_address) {}

  // The sample's number, dense from 0. O(frames).
  uint32_t Add(const PlacedSample& placed, Resolver& resolver);
  const Stack& at(uint32_t number) const { return stacks_.at(number); }
  std::vector<Stack> Take() { return std::move(stacks_); }

 private:
  bool by_address_;
  absl::flat_hash_map<Stack, uint32_t> numbers_;
  std::vector<Stack> stacks_;
};

}  // namespace xenoscope::correlate
