#include "store/counters.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "store/bounded_text.h"

namespace xenoscope::store {
namespace {

// Calls visit(name, number) for each whole number that is counted.
template <typename Samples, typename Results, typename Visitor>
void ForEachCount(Samples& samples, Results& results, Visitor visit) {
  auto& counts = results.counts;
  visit("samples", counts.samples);
  for (size_t i = 0; i < correlate::kPlacements; ++i) {
    visit(std::string("placed.") + ToString(static_cast<correlate::Placement>(i)),
          counts.placed.at(i));
  }
  for (size_t i = 0; i < correlate::kUnplacedReasons; ++i) {
    visit(std::string("unplaced.") + ToString(static_cast<correlate::UnplacedReason>(i)),
          counts.unplaced.at(i));
  }
  visit("repaired", counts.repaired);
  visit("stale", counts.stale);
  visit("nmi_exits", counts.nmi_exits);
  visit("lost_records", counts.lost_records);
  visit("lost_cycles", counts.lost_time);
  visit("trace_damages", counts.unread.damages);
  visit("trace_damaged_bytes", counts.unread.damaged_bytes);
  visit("trace_malformed_records", counts.unread.malformed);
  visit("lost_in_buffers", samples.lost_in_buffers);
  visit("damaged", results.damaged);
}

}  // namespace

std::vector<Counter> CountersOf(const profile::SampleSet& samples,
                                const profile::ProfileResults& results) {
  std::vector<Counter> counters;
  ForEachCount(samples, results, [&](const std::string& name, uint64_t number) {
    if (number > 0) counters.push_back({name, static_cast<double>(number)});
  });
  for (const correlate::Unresolved& unresolved : results.result.unresolved) {
    counters.push_back(
        {std::string(kUnresolvedCounter) + BoundedName(unresolved.why), unresolved.samples});
  }
  return counters;
}

void AddCounter(const Counter& counter, profile::SampleSet& samples,
                profile::ProfileResults& results) {
  ForEachCount(samples, results, [&](const std::string& name, uint64_t& number) {
    if (name == counter.name) number += static_cast<uint64_t>(std::llround(counter.value));
  });
  if (!counter.name.starts_with(kUnresolvedCounter)) return;
  const std::string why = counter.name.substr(kUnresolvedCounter.size());
  std::vector<correlate::Unresolved>& all = results.result.unresolved;
  const auto known = std::ranges::find(all, why, &correlate::Unresolved::why);
  if (known == all.end()) {
    all.push_back({why, counter.value});
  } else {
    known->samples += counter.value;
  }
}

}  // namespace xenoscope::store
