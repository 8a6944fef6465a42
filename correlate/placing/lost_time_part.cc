#include "correlate/placing/lost_time_part.h"

#include <algorithm>
#include <cmath>

namespace xenoscope::correlate {
namespace {

// Weights follow the samples no further than by so many standard errors: beyond, the trace and the
// samples disagree for another reason.
constexpr double kMostErrors = 3;

// So few samples say nothing of lost time.
constexpr double kFewSamples = 100;

// The number of samples for which the initial part of Xen counts.
constexpr double kInitialSamples = 4;

}  // namespace

double SampleRate::PerCycle() const {
  return running_ > 0 ? samples_ / (running_ * (1 + lost_ / known_)) : 0;
}

void LostTimePart::AddSample(Mode mode, double in_lost, SampleRate& rate) {
  if (samples_ == 0) rate.AddRunning(running_);
  rate.AddSample();
  samples_ += 1;
  in_xen_ += mode == Mode::kXen ? 1 : 0;
  in_lost_ += in_lost;
}

double LostTimePart::Running(double initial, const SampleRate& rate) const {
  if (samples_ < kFewSamples) return initial;
  const double beyond_known = samples_ - rate.PerCycle() * running_;
  const double errors = (beyond_known - in_lost_) / std::sqrt(samples_);
  return std::min(1.0, initial * std::exp(std::clamp(errors, -kMostErrors, kMostErrors)));
}

double LostTimePart::InXen(double initial) const {
  return (in_xen_ + kInitialSamples * initial) / (samples_ + kInitialSamples);
}

}  // namespace xenoscope::correlate
