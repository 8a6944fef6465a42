// The different call stacks of samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/address_space_id.h"
#include "base/ids.h"
#include "base/mode.h"
#include "base/resolver.h"
#include "base/string_interner.h"
#include "correlate/placing/placed_sample.h"

namespace xenoscope::correlate {

struct StackFrame {
  FunctionId function;
  Mode mode = Mode::kUser;
  // The address of the code that was running, or within the call instruction that led to the next
  // frame. 0 if addresses do not tell stacks apart.
  Address address = 0;
  // If the frame is of a function that the compiler inlined: its number in Stacks::inlined().
  // `function` is then the function that it was inlined into.
  std::optional<uint32_t> inlined = std::nullopt;

  constexpr bool operator==(const StackFrame&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const StackFrame& frame) {
    return H::combine(std::move(h), frame.function.value, frame.mode, frame.address, frame.inlined);
  }
};

using Stack = std::vector<StackFrame>;  // innermost first

// Code of a domain; `space` matters in user mode only.
struct CodeLocation {
  DomainId domain;
  Mode mode = Mode::kUser;
  AddressSpaceId space;
  Address address = 0;

  bool operator==(const CodeLocation&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const CodeLocation& place) {
    return H::combine(std::move(h), place.domain, place.mode, place.space.value, place.address);
  }
};

// Returns the names of the inlined functions to which the code belongs, within the function that
// holds it: the innermost first.
using InlinedAt = std::function<std::vector<std::string>(const CodeLocation&)>;

// Numbers stacks. Memory: the different stacks, and the code for which `inlined_at` was asked.
class Stacks {
 public:
  // Stacks that differ in addresses only are one, unless `by_address`. `inlined_at`, if there is
  // one, is asked once for each code location; the functions that it returns become frames.
  explicit Stacks(bool by_address, InlinedAt inlined_at = {})
      : by_address_(by_address), inlined_at_(std::move(inlined_at)) {}

  // Returns the number of the sample's stack; numbers count up from 0. O(frames).
  uint32_t Add(const PlacedSample& placed, Resolver& resolver);
  const Stack& at(uint32_t number) const { return stacks_.at(number); }
  std::vector<Stack> Take() { return std::move(stacks_); }
  // The names of inlined functions, by StackFrame::inlined.
  const std::vector<std::string>& inlined() const { return names_.all(); }

 private:
  // Adds the frame to the stack, after the frames of the functions that were inlined there.
  void Push(FunctionId function, const CodeLocation& place, Stack& stack);

  bool by_address_;
  InlinedAt inlined_at_;
  StringInterner names_;
  absl::flat_hash_map<CodeLocation, std::vector<uint32_t>> inlined_;  // indices into names_
  absl::flat_hash_map<Stack, uint32_t> numbers_;
  std::vector<Stack> stacks_;
};

}  // namespace xenoscope::correlate
