// Totals of `xenoscope stat` that counters have: of a command, or of every CPU.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "profile/event_totals.h"
#include "sampler/event_spec.h"
#include "sampler/perf/perf_counters.h"

namespace xenoscope::cli {

// Returns what a counter has counted, as a part of totals.
profile::CountedPart ToPart(const sampler::CounterReading& counted, std::optional<DomainId> domain);

// Counters, and what they have counted since they were read last.
class StatCounters {
 public:
  // Opens counters of the events. `domain` is the domain that this Linux is; not set: there is no
  // Xen. Errors: those of PerfCounters::Open.
  static absl::StatusOr<StatCounters> Open(std::span<const sampler::EventSpec> events,
                                           sampler::CounterScope scope,
                                           std::optional<DomainId> domain);

  absl::Status Enable(bool on) { return counters_.Enable(on); }
  // Returns the totals since the last call, or since the begin, with those of guests that counted
  // the same events.
  absl::StatusOr<profile::EventTotals> Next(profile::TotalsBy by,
                                            std::vector<profile::CountedPart> of_guests);
  // Returns why events cannot be counted, one sentence each.
  [[nodiscard]] std::vector<std::string> Notes() const;

 private:
  StatCounters(sampler::PerfCounters counters, std::optional<DomainId> domain)
      : counters_(std::move(counters)), domain_(domain) {}

  // Returns the events as the ratios of a profile know them.
  [[nodiscard]] std::vector<recording::EventInfo> EventInfos() const;

  sampler::PerfCounters counters_;
  std::optional<DomainId> domain_;
  std::vector<sampler::CounterReading> last_;
};

}  // namespace xenoscope::cli
