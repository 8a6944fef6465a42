#include "correlate/stacks.h"

#include "base/user_registers.h"

namespace xenoscope::correlate {

void Stacks::Push(FunctionId function, const CodeLocation& place, Stack& stack) {
  const Address address = by_address_ ? place.address : Address{0};
  if (inlined_at_) {
    const auto [at, is_new] = inlined_.try_emplace(place);
    if (is_new) {
      for (const std::string& name : inlined_at_(place)) at->second.push_back(names_.Intern(name));
    }
    for (const uint32_t name : at->second) {
      stack.push_back({function, place.mode, address, name});
    }
  }
  stack.push_back({function, place.mode, address});
}

uint32_t Stacks::Add(const PlacedSample& placed, Resolver& resolver) {
  const recording::Sample& sample = *placed.sample;
  Stack stack;
  stack.reserve(sample.callers.size() + 1);
  const DomainId domain = placed.vcpu.domain;
  Push(FunctionOf(placed, resolver), {domain, placed.mode(), sample.space, placed.address}, stack);
  Mode inner = placed.mode();
  for (size_t i = 0; i < sample.callers.size(); ++i) {
    const Mode mode = sample.callers.ModeAt(i);
    // A caller's address is that of the instruction behind the call, which can be the function's
    // last one. Code that another mode interrupted has the address of its own instruction.
    Address address = sample.callers.at(i);
    if (mode == inner && !ChainEndAt(address)) --address;
    const FunctionId function = mode == Mode::kUser && sample.space.value != 0
                                    ? resolver.ResolveInProcess(domain, sample.space, address)
                                    : resolver.Resolve(domain, mode, address);
    Push(function, {domain, mode, sample.space, address}, stack);
    inner = mode;
  }
  const auto [at, is_new] =
      numbers_.try_emplace(std::move(stack), static_cast<uint32_t>(stacks_.size()));
  if (is_new) stacks_.push_back(at->first);
  return at->second;
}

}  // namespace xenoscope::correlate
