#include "correlate/cross_checks.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace xenoscope::correlate {
namespace {

// The fewest samples of a domain for which anything is said.
constexpr uint64_t kMinSamples = 100;
// The part of samples that may seem to be impossible, as the trace's records are late by some
// cycles.
constexpr double kMaxImpossibleShare = 0.01;
// Kolmogorov's test: the probability of a distance of d by chance in n samples is 2 exp(-2 n d^2).
// The other limit leaves out distances that would not change a figure by much.
constexpr double kMinDistance = 0.1;
constexpr double kMinTestStatistic = 8;  // n d^2

}  // namespace

bool PlacingCheck::HasImpossibleSamples() const {
  return samples >= kMinSamples &&
         static_cast<double>(impossible) > kMaxImpossibleShare * static_cast<double>(samples);
}

bool PlacingCheck::HasLongBrackets() const {
  return bracketed >= kMinSamples && timeslice > 0 && bracket > timeslice;
}

bool PlacingCheck::IsAliased() const {
  if (exact < kMinSamples) return false;
  const double beyond =
      distance - static_cast<double>(missed) / static_cast<double>(exact + missed);
  return beyond > kMinDistance && static_cast<double>(exact) * beyond * beyond > kMinTestStatistic;
}

Cycles CrossChecks::BinBegin(size_t bin) {
  if (bin == 0) return 0;
  const size_t octave = (bin - 1) / 4 + kFirstOctave;
  return (4 + (bin - 1) % 4) << (octave - 2);
}

CrossChecks::Vcpu& CrossChecks::VcpuAt(uint32_t index, VcpuRef vcpu) {
  if (index >= vcpus_.size()) vcpus_.resize(size_t{index} + 1);
  vcpus_[index].ref = vcpu;
  return vcpus_[index];
}

CrossChecks::Ages& CrossChecks::AgesOf(uint32_t index, VcpuRef vcpu) {
  Vcpu& entry = VcpuAt(index, vcpu);
  if (entry.ages == nullptr) entry.ages = std::make_unique<Ages>();
  return *entry.ages;
}

void CrossChecks::AddTimeslice(uint32_t index, VcpuRef vcpu, Cycles length) {
  Vcpu& entry = VcpuAt(index, vcpu);
  const auto cycles = static_cast<double>(length);
  entry.timeslices += cycles;
  entry.timeslice_squares += cycles * cycles;
}

void CrossChecks::AddExact(uint32_t index, VcpuRef vcpu, Cycles age) {
  ++VcpuAt(index, vcpu).samples;
  ++AgesOf(index, vcpu).samples[BinOf(age)];
}

void CrossChecks::AddBracketed(uint32_t index, VcpuRef vcpu, Cycles bracket) {
  Vcpu& entry = VcpuAt(index, vcpu);
  ++entry.samples;
  ++entry.bracketed;
  entry.brackets += static_cast<double>(bracket);
}

void CrossChecks::AddClocked(uint32_t index, VcpuRef vcpu, Cycles range) {
  Vcpu& entry = VcpuAt(index, vcpu);
  ++entry.samples;
  ++entry.clocked;
  entry.clock_errors += static_cast<double>(range) / 2;
}

void CrossChecks::AddImpossible(uint32_t index, VcpuRef vcpu) {
  Vcpu& entry = VcpuAt(index, vcpu);
  ++entry.samples;
  ++entry.impossible;
}

std::array<double, CrossChecks::kBins> CrossChecks::TimeOf(const Ages& ages) {
  std::array<double, kBins> times{};
  Bounds below;
  Cycles before = 0;  // the time below the bin
  for (size_t bin = 0; bin < kBins; ++bin) {
    below += ages.bounds[bin];
    // Below the end of the last bin as many ranges end as begin.
    const Cycles end = bin + 1 < kBins ? BinBegin(bin + 1) : 0;
    const Cycles time = below.count * end - below.ages;
    times[bin] = static_cast<double>(time - before);
    before = time;
  }
  return times;
}

void CrossChecks::Compare(const Ages& ages, PlacingCheck& check) {
  const std::array<double, kBins> times = TimeOf(ages);
  double all = 0;
  for (size_t bin = 0; bin < kBins; ++bin) {
    all += times[bin];
    check.exact += ages.samples[bin];
  }
  if (all <= 0 || check.exact == 0) return;
  double time = 0;
  double samples = 0;
  for (size_t bin = 0; bin < kBins; ++bin) {
    time += times[bin] / all;
    samples += static_cast<double>(ages.samples[bin]) / static_cast<double>(check.exact);
    check.distance = std::max(check.distance, std::abs(samples - time));
  }
}

std::vector<PlacingCheck> CrossChecks::Conclude() const {
  std::map<DomainId, std::pair<Vcpu, Ages>> domains;
  for (const Vcpu& vcpu : vcpus_) {
    auto& [sums, ages] = domains[vcpu.ref.domain];
    sums.samples += vcpu.samples;
    sums.impossible += vcpu.impossible;
    sums.bracketed += vcpu.bracketed;
    sums.missed += vcpu.missed;
    sums.held += vcpu.held;
    sums.brackets += vcpu.brackets;
    sums.clocked += vcpu.clocked;
    sums.clock_errors += vcpu.clock_errors;
    sums.timeslices += vcpu.timeslices;
    sums.timeslice_squares += vcpu.timeslice_squares;
    if (vcpu.ages == nullptr) continue;
    for (size_t bin = 0; bin < kBins; ++bin) {
      ages.bounds[bin] += vcpu.ages->bounds[bin];
      ages.samples[bin] += vcpu.ages->samples[bin];
    }
  }
  std::vector<PlacingCheck> checks;
  for (const auto& [domain, entry] : domains) {
    const auto& [sums, ages] = entry;
    if (sums.samples == 0) continue;
    PlacingCheck& check = checks.emplace_back();
    check.domain = domain;
    check.samples = sums.samples;
    check.impossible = sums.impossible;
    check.bracketed = sums.bracketed;
    check.missed = sums.missed;
    check.ran = sums.timeslices;
    check.held = static_cast<double>(sums.held);
    if (sums.bracketed > 0) check.bracket = sums.brackets / static_cast<double>(sums.bracketed);
    check.clocked = sums.clocked;
    if (sums.clocked > 0) {
      check.clock_error = sums.clock_errors / static_cast<double>(sums.clocked);
    }
    if (sums.timeslices > 0) check.timeslice = sums.timeslice_squares / sums.timeslices;
    Compare(ages, check);
  }
  return checks;
}

}  // namespace xenoscope::correlate
