#include "guests/threads/times_within.h"

namespace xenoscope::guests {

void TimesWithin::OnInterval(const ThreadInterval& interval) {
  const TscRange part = interval.range.Intersect(range_);
  if (part.Empty()) return;
  std::vector<StateTimes>& times = times_[interval.domain];
  if (interval.thread >= times.size()) times.resize(interval.thread + 1);
  times[interval.thread][static_cast<size_t>(interval.state)] += part.Length();
}

StateTimes TimesWithin::Of(DomainId domain, size_t thread) const {
  const auto found = times_.find(domain);
  if (found == times_.end() || thread >= found->second.size()) return {};
  return found->second[thread];
}

}  // namespace xenoscope::guests
