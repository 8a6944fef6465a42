#include "cli/stat_counters.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "recording/info.h"

namespace xenoscope::cli {

using profile::EventTotals;
using sampler::CounterReading;

absl::StatusOr<StatCounters> StatCounters::Open(std::span<const sampler::EventSpec> events,
                                                sampler::CounterScope scope,
                                                std::optional<DomainId> domain) {
  XENOSCOPE_ASSIGN_OR_RETURN(sampler::PerfCounters counters,
                             sampler::PerfCounters::Open(events, scope, sampler::LinuxPerfCalls()));
  return StatCounters(std::move(counters), domain);
}

std::vector<recording::EventInfo> StatCounters::EventInfos() const {
  std::vector<recording::EventInfo> infos;
  for (const sampler::CountedEvent& counted : counters_.events()) {
    recording::EventInfo& info = infos.emplace_back();
    info.name = counted.event.name;
    info.period = 1;
    const bool is_of_linux = counted.event.attributes.type == PERF_TYPE_SOFTWARE;
    info.clocked_by = is_of_linux ? "linux" : "pmu";
    info.modes = counted.event.modes;
    info.source = "perf";
  }
  return infos;
}

profile::CountedPart ToPart(const CounterReading& counted, std::optional<DomainId> domain) {
  profile::CountedPart part;
  part.event = counted.event;
  part.domain = domain;
  if (counted.cpu) part.vcpu = VcpuId{*counted.cpu};
  part.count = static_cast<double>(counted.count);
  part.enabled_ns = static_cast<double>(counted.enabled_ns);
  part.running_ns = static_cast<double>(counted.running_ns);
  return part;
}

absl::StatusOr<EventTotals> StatCounters::Next(profile::TotalsBy by,
                                               std::vector<profile::CountedPart> of_guests) {
  XENOSCOPE_ASSIGN_OR_RETURN(std::vector<CounterReading> now, counters_.Read());
  const std::vector<recording::EventInfo> infos = EventInfos();
  std::vector<profile::CountedPart> parts = std::move(of_guests);
  for (size_t i = 0; i < now.size(); ++i) {
    CounterReading since = now[i];
    if (!last_.empty()) {
      since.count -= last_[i].count;
      since.enabled_ns -= last_[i].enabled_ns;
      since.running_ns -= last_[i].running_ns;
    }
    parts.push_back(ToPart(since, domain_));
  }
  last_ = std::move(now);
  EventTotals totals;
  std::vector<profile::EventGroup> groups;
  for (size_t event = 0; event < infos.size(); ++event) {
    const sampler::CountedEvent& counted = counters_.events()[event];
    groups.push_back({static_cast<uint16_t>(event)});
    const std::string name = profile::EventSpelling(infos, groups.back());
    totals.events.push_back({name + (counted.user_only ? ":u" : ""), counted.event.is_timer});
    if (!counted.obstacle.empty()) {
      parts.push_back({.event = event, .domain = domain_, .vcpu = {}, .counted = false});
    }
  }
  AddCounted(parts, by, totals);
  SetRatios(profile::CompareEvents({}, infos, groups), totals);
  return totals;
}

std::vector<std::string> StatCounters::Notes() const {
  std::vector<std::string> notes;
  for (const sampler::CountedEvent& counted : counters_.events()) {
    if (!counted.obstacle.empty()) notes.push_back(counted.obstacle);
  }
  return notes;
}

}  // namespace xenoscope::cli
