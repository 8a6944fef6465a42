#include "correlate/placing/placed_sample.h"

#include <algorithm>

namespace xenoscope::correlate {

const char* ToString(Placement placement) {
  switch (placement) {
    case Placement::kInstant:
      return "instant";
    case Placement::kNmiExit:
      return "twin";
    case Placement::kAtExit:
      return "at_exit";
    case Placement::kStopped:
      return "stopped";
    case Placement::kClocked:
      return "clocked";
    case Placement::kBracketed:
      return "bracketed";
    case Placement::kUntraced:
      return "untraced";
  }
  return "?";
}

const char* ToString(UnplacedReason reason) {
  switch (reason) {
    case UnplacedReason::kOutsideTrace:
      return "outside_trace";
    case UnplacedReason::kUnknownVcpu:
      return "unknown_vcpu";
    case UnplacedReason::kNotRunning:
      return "not_running";
    case UnplacedReason::kModeDisagrees:
      return "mode_disagrees";
    case UnplacedReason::kTraceLost:
      return "trace_lost";
    case UnplacedReason::kOutOfOrder:
      return "out_of_order";
  }
  return "?";
}

FunctionId FunctionOf(const PlacedSample& placed, Resolver& resolver) {
  if (placed.function) return *placed.function;
  const recording::Sample& sample = *placed.sample;
  const DomainId domain = placed.vcpu.domain;
  const bool is_nested =
      !placed.places.empty() && std::ranges::all_of(placed.places, [](const Place& place) {
        return place.context.kind == ContextKind::kGuest && place.context.nested;
      });
  if (is_nested) return resolver.ResolveNested(domain, placed.mode(), placed.address);
  if (placed.mode() == Mode::kUser && sample.space.value != 0) {
    return resolver.ResolveInProcess(domain, sample.space, placed.address);
  }
  return resolver.Resolve(domain, placed.mode(), placed.address);
}

}  // namespace xenoscope::correlate
