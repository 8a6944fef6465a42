#include "correlate/stacks.h"

namespace xenoscope::correlate {

uint32_t Stacks::Add(const PlacedSample& placed, Resolver& resolver) {
  const recording::Sample& sample = *placed.sample;
  Stack stack;
  stack.reserve(sample.callers.size() + 1);
  stack.push_back(
      {FunctionOf(placed, resolver), sample.mode, by_address_ ? placed.address : Address{0}});
  Mode inner = sample.mode;
  for (size_t i = 0; i < sample.callers.size(); ++i) {
    const Mode mode = sample.callers.ModeAt(i);
    // A caller's address is where it goes on: behind the call, which can be the function's last
    // instruction. What was interrupted, by another mode, was at its own.
    const Address address = sample.callers.at(i) - (mode == inner ? 1 : 0);
    const DomainId domain = placed.vcpu.domain;
    const FunctionId function = mode == Mode::kUser && sample.space.value != 0
                                    ? resolver.ResolveInProcess(domain, sample.space, address)
                                    : resolver.Resolve(domain, mode, address);
    stack.push_back({function, mode, by_address_ ? address : Address{0}});
    inner = mode;
  }
  const auto [at, is_new] =
      numbers_.try_emplace(std::move(stack), static_cast<uint32_t>(stacks_.size()));
  if (is_new) stacks_.push_back(at->first);
  return at->second;
}

}  // namespace xenoscope::correlate
