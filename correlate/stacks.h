// The different call stacks of samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/address_space_id.h"
#include "base/ids.h"
#include "base/mode.h"
#include "base/resolver.h"
#include "base/string_interner.h"
#include "correlate/context.h"
#include "correlate/placing/placed_sample.h"

namespace xenoscope::correlate {

struct StackFrame {
  // Frames of the last two kinds say why Xen ran: they have its mode, and are before its functions.
  enum class Kind : uint8_t {
    kFunction,
    kInlined,  // of a function that the compiler inlined into `function`
    // The reason of the VM exit, or between which records of the trace Xen ran. Of
    // ContextKind::kRunning: neither the trace nor the stack shows why Xen ran.
    kExit,
    kSubreason,  // what the exit was about
  };

  FunctionId function;
  Mode mode = Mode::kUser;
  // The address of the code that was running, or within the call instruction that led to the next
  // frame. 0 if addresses do not tell stacks apart.
  Address address = 0;
  Kind kind = Kind::kFunction;
  uint32_t number = 0;  // kInlined: index into Stacks::inlined(); kExit and kSubreason: exits()

  constexpr bool operator==(const StackFrame&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const StackFrame& frame) {
    return H::combine(std::move(h), frame.function.value, frame.mode, frame.address, frame.kind,
                      frame.number);
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

struct StackOptions {
  bool by_address = false;      // else stacks that differ in addresses only are one
  bool fold_recursion = false;  // a function that calls itself is one frame, the innermost
  // If there is one, it is asked once for each code location; the functions that it returns become
  // frames.
  InlinedAt inlined_at{};
};

// Numbers stacks. Memory: the different stacks, and the different code locations in them.
class Stacks {
 public:
  explicit Stacks(StackOptions options) : options_(std::move(options)) {}

  // Returns the number of the sample's stack; numbers count up from 0. O(frames).
  uint32_t Add(const PlacedSample& placed, Resolver& resolver);
  // Returns the number of the stack with frames for the exit in which Xen ran, outside of Xen's
  // innermost functions. The same number if these are not Xen's, or the context is of no trace, or
  // does not tell why Xen ran while callers in Xen do. O(1) on the average; O(frames) for a new
  // stack.
  uint32_t WithExit(uint32_t number, const Context& context);
  const Stack& at(uint32_t number) const { return stacks_.at(number); }
  std::vector<Stack> Take() { return std::move(stacks_); }
  // The names of inlined functions.
  const std::vector<std::string>& inlined() const { return names_.all(); }
  // Exits: kind, reason and whether they are of a nested guest for kExit, the rest for kSubreason.
  const std::vector<Context>& exits() const { return exits_; }

 private:
  // Returns the caller's function, which is looked up once for each place.
  FunctionId CallerAt(const CodeLocation& place, Resolver& resolver);
  // Adds the frame to the stack, after the frames of the functions that were inlined there.
  void Push(FunctionId function, const CodeLocation& place, Stack& stack);
  uint32_t NumberOf(const Stack& stack);
  uint32_t NumberOfExit(const Context& exit);

  StackOptions options_;
  StringInterner names_;
  absl::flat_hash_map<CodeLocation, FunctionId> callers_;
  absl::flat_hash_map<CodeLocation, std::vector<uint32_t>> inlined_;  // indices into names_
  Stack stack_;                                                       // of the sample at hand
  std::vector<Context> exits_;
  absl::flat_hash_map<Context, uint32_t> exit_numbers_;
  absl::flat_hash_map<std::pair<uint32_t, Context>, uint32_t> with_exit_;
  absl::flat_hash_map<Stack, uint32_t> numbers_;
  std::vector<Stack> stacks_;
};

}  // namespace xenoscope::correlate
