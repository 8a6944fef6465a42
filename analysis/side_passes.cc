#include "analysis/side_passes.h"

#include "trace/ordered_stream.h"
#include "trace/probe.h"

namespace xenoscope::analysis {

void SidePasses::BeginSkews(const correlate::TimeSpans& contradictions) {
  if (skews_.valid()) return;
  range_ = {file_->Stream().next_tsc(), trace::LastTsc(*file_)};
  skews_ = std::async(std::launch::async, [this, contradictions] {
    return correlate::CompareClocks(*file_, range_, contradictions);
  });
}

void SidePasses::BeginGuestClocks() {
  if (guest_clocks_.valid()) return;
  guest_clocks_ =
      std::async(std::launch::async, [this] { return correlate::FindGuestClocks(*file_); });
}

std::vector<correlate::ClockSkew> SidePasses::Skews(TscRange range,
                                                    const correlate::TimeSpans& contradictions) {
  // The last record may have a time that the analyses do not believe.
  if (skews_.valid() && range_ == range) {
    auto skews = skews_.get();
    if (!skews.empty()) return skews;  // later contradictions can prove no more
  }
  return correlate::CompareClocks(*file_, range, contradictions);
}

std::vector<correlate::DomainClock> SidePasses::GuestClocks() {
  return guest_clocks_.valid() ? guest_clocks_.get() : correlate::FindGuestClocks(*file_);
}

}  // namespace xenoscope::analysis
