// The call stacks that samples had, each once.
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
  // Of the code that was running or had made a call: inside the call, where that is how it got
  // here. 0 where stacks are not told apart by it.
  Address address = 0;
  // Where it is of a function that the compiler inlined there: its number in Stacks::inlined(), and
  // `function` is the one that it was inlined into.
  std::optional<uint32_t> inlined = std::nullopt;

  constexpr bool operator==(const StackFrame&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const StackFrame& frame) {
    return H::combine(std::move(h), frame.function.value, frame.mode, frame.address, frame.inlined);
  }
};

using Stack = std::vector<StackFrame>;  // innermost first

// Code of a domain; `space` counts in user mode.
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

// The names of the functions that were inlined into the one that the code is of, as far as the code
// is theirs: the innermost first.
using InlinedAt = std::function<std::vector<std::string>(const CodeLocation&)>;

// Memory: the stacks that differ, and the places that were asked about.
class Stacks {
 public:
  // Stacks that differ in addresses only are one, unless `by_address`. `inlined_at`, where there is
  // one, is asked once for each place; what it says are frames of their own.
  explicit Stacks(bool by_address, InlinedAt inlined_at = {})
      : by_address_(by_address), inlined_at_(std::move(inlined_at)) {}

  // The sample's number, dense from 0. O(frames).
  uint32_t Add(const PlacedSample& placed, Resolver& resolver);
  const Stack& at(uint32_t number) const { return stacks_.at(number); }
  std::vector<Stack> Take() { return std::move(stacks_); }
  // By StackFrame::inlined.
  const std::vector<std::string>& inlined() const { return names_.all(); }

 private:
  // Adds the frame to the stack, after those of what was inlined there.
  void Push(FunctionId function, const CodeLocation& place, Stack& stack);

  bool by_address_;
  InlinedAt inlined_at_;
  StringInterner names_;
  absl::flat_hash_map<CodeLocation, std::vector<uint32_t>> inlined_;  // of names_
  absl::flat_hash_map<Stack, uint32_t> numbers_;
  std::vector<Stack> stacks_;
};

}  // namespace xenoscope::correlate
