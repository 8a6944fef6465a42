#include "report/export/timeline_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "trace/names.h"

namespace xenoscope::report {

using correlate::Mark;
using correlate::MarkKind;

std::string MarkKindName(MarkKind kind) {
  switch (kind) {
    case MarkKind::kHypercall:
      return "hypercall";
    case MarkKind::kSubcall:
      return "hypercall in multicall";
    case MarkKind::kTrap:
      return "trap";
    case MarkKind::kPageFault:
      return "page_fault";
    case MarkKind::kEmulation:
      break;
  }
  return "emulation";
}

std::string MarkName(const Mark& mark) {
  const auto or_number = [&](std::string_view kind, std::string_view name) {
    return name.empty() ? fmt::format("{} {}", kind, mark.number) : std::string(name);
  };
  switch (mark.kind) {
    case MarkKind::kHypercall:
    case MarkKind::kSubcall:
      return or_number("hypercall", trace::HypercallName(mark.number));
    case MarkKind::kTrap:
      return or_number("trap", trace::TrapName(mark.number));
    case MarkKind::kPageFault:
      return "page_fault";
    case MarkKind::kEmulation:
      break;
  }
  return "emulation";
}

std::string RunstateName(const correlate::RunstateInterval& interval) {
  std::string name = ToString(interval.state);
  if (interval.state == correlate::TimelineState::kRunnable) {
    name += fmt::format(": {}", ToString(interval.cause));
  }
  return name;
}

// It is the candidate that a weighted majority vote leaves (Boyer and Moore), if it has the
// majority.
std::optional<correlate::Context> LikelyContext(std::span<const correlate::Place> places) {
  std::optional<correlate::Context> candidate;
  double ahead = 0;
  for (const correlate::Place& place : places) {
    const double weight = std::max(place.weight, 0.0);
    if (candidate == place.context) {
      ahead += weight;
    } else if (weight > ahead) {
      candidate = place.context;
      ahead = weight - ahead;
    } else {
      ahead -= weight;
    }
  }
  double of_candidate = 0;
  double all = 0;
  for (const correlate::Place& place : places) {
    const double weight = std::max(place.weight, 0.0);
    all += weight;
    if (candidate == place.context) of_candidate += weight;
  }
  if (2 * of_candidate <= all) return std::nullopt;
  return candidate;
}

}  // namespace xenoscope::report
