#include "correlate/stacks.h"

#include <algorithm>

#include "base/user_registers.h"

namespace xenoscope::correlate {
namespace {

// Whether the context of Xen's code says more than that a vCPU ran.
constexpr bool TellsWhyXenRan(ContextKind kind) {
  return kind == ContextKind::kExit || kind == ContextKind::kResume ||
         kind == ContextKind::kSwitch || kind == ContextKind::kTransition;
}

// Whether a function of Xen is followed by its callers, which say themselves why Xen ran.
bool HasCallersInXen(const Stack& stack) {
  return std::ranges::count_if(stack, [](const StackFrame& frame) {
           return frame.mode == Mode::kXen && frame.kind == StackFrame::Kind::kFunction;
         }) > 1;
}

}  // namespace

void Stacks::Push(FunctionId function, const CodeLocation& place, Stack& stack) {
  if (options_.fold_recursion && !stack.empty() && stack.back().function == function &&
      stack.back().mode == place.mode) {
    return;
  }
  const Address address = options_.by_address ? place.address : Address{0};
  if (options_.inlined_at) {
    const auto [at, is_new] = inlined_.try_emplace(place);
    if (is_new) {
      for (const std::string& name : options_.inlined_at(place))
        at->second.push_back(names_.Intern(name));
    }
    for (const uint32_t name : at->second) {
      stack.push_back({function, place.mode, address, StackFrame::Kind::kInlined, name});
    }
  }
  stack.push_back({function, place.mode, address});
}

uint32_t Stacks::Add(const PlacedSample& placed, Resolver& resolver) {
  const recording::Sample& sample = *placed.sample;
  stack_.clear();
  const DomainId domain = placed.vcpu.domain;
  Push(FunctionOf(placed, resolver), {domain, placed.mode(), sample.space, placed.address}, stack_);
  Mode inner = placed.mode();
  for (size_t i = 0; i < sample.callers.size(); ++i) {
    const Mode mode = sample.callers.ModeAt(i);
    // A caller's address is that of the instruction behind the call, which can be the function's
    // last one. Code that another mode interrupted has the address of its own instruction.
    Address address = sample.callers.at(i);
    if (mode == inner && !ChainEndAt(address)) --address;
    const AddressSpaceId space = mode == Mode::kUser ? sample.space : AddressSpaceId{};
    const CodeLocation place{domain, mode, space, address};
    Push(CallerAt(place, resolver), place, stack_);
    inner = mode;
  }
  return NumberOf(stack_);
}

FunctionId Stacks::CallerAt(const CodeLocation& place, Resolver& resolver) {
  const auto [at, is_new] = callers_.try_emplace(place);
  if (is_new) {
    at->second = place.space.value != 0
                     ? resolver.ResolveInProcess(place.domain, place.space, place.address)
                     : resolver.Resolve(place.domain, place.mode, place.address);
  }
  return at->second;
}

uint32_t Stacks::NumberOf(const Stack& stack) {
  const auto [at, is_new] = numbers_.try_emplace(stack, static_cast<uint32_t>(stacks_.size()));
  if (is_new) stacks_.push_back(stack);
  return at->second;
}

uint32_t Stacks::NumberOfExit(const Context& exit) {
  const auto [at, is_new] = exit_numbers_.try_emplace(exit, static_cast<uint32_t>(exits_.size()));
  if (is_new) exits_.push_back(exit);
  return at->second;
}

uint32_t Stacks::WithExit(uint32_t number, const Context& context) {
  if (stacks_.at(number).front().mode != Mode::kXen) return number;
  const bool unknown =
      context.kind == ContextKind::kRunning && !HasCallersInXen(stacks_.at(number));
  if (!unknown && !TellsWhyXenRan(context.kind)) return number;
  const Context exit{context.kind, context.nested, context.reason};
  const Context subreason{.exit_kind = context.exit_kind, .number = context.number};
  Context both = context;
  both.waiting = 0;
  both.wakeup = 0;
  both.thread = 0;
  if (const auto known = with_exit_.find({number, both}); known != with_exit_.end()) {
    return known->second;
  }
  Stack stack = stacks_[number];
  Stack why;  // innermost first
  if (subreason.exit_kind != ExitKind::kNoHandler) {
    why.push_back({{}, Mode::kXen, 0, StackFrame::Kind::kSubreason, NumberOfExit(subreason)});
  }
  why.push_back({{}, Mode::kXen, 0, StackFrame::Kind::kExit, NumberOfExit(exit)});
  const auto caller =
      std::ranges::find_if(stack, [](const StackFrame& frame) { return frame.mode != Mode::kXen; });
  stack.insert(caller, why.begin(), why.end());
  return with_exit_[{number, both}] = NumberOf(stack);
}

}  // namespace xenoscope::correlate
