#include "report/html/page_over_time.h"

#include <bit>
#include <cstddef>
#include <iterator>
#include <numeric>

namespace xenoscope::report {

void PageOverTime::Add(const correlate::PlacedSample& placed) {
  const auto count = static_cast<double>(placed.count);
  const auto octave = static_cast<size_t>(std::bit_width(placed.when.Length() / 2));
  samples_by_length_.at(octave) += count;
  const FunctionId function = correlate::FunctionOf(placed, resolver_);
  for (const correlate::Place& place : placed.places) {
    const VcpuRef vcpu = place.to.value_or(placed.vcpu);
    const Number key{vcpu, placed.mode(), ExitOf(place.context), function.value};
    const auto next = static_cast<uint32_t>(numbers_.size());
    const uint32_t number = numbers_.try_emplace(key, next).first->second;
    sums_.Add(number, placed.when, place.weight * count);
  }
}

double PageOverTime::WithoutTime() const {
  const double all = std::accumulate(samples_by_length_.begin(), samples_by_length_.end(), 0.0);
  double longer = 0;
  for (size_t i = 0; i < samples_by_length_.size(); ++i) {
    if (i >= 64 || uint64_t{1} << i > width()) longer += samples_by_length_.at(i);
  }
  return all > 0 ? longer / all : 0;
}

PageOverTime::Times PageOverTime::ByKey() const {
  const std::vector<std::vector<correlate::BinAmount>> by_number = sums_.ByKey(numbers_.size());
  Times times;
  for (const auto& [key, number] : numbers_) {
    const auto& [vcpu, mode, exit, function] = key;
    auto& bins = times[{vcpu, mode, exit, resolver_.Describe(FunctionId{function}).name}];
    bins.insert(bins.end(), by_number[number].begin(), by_number[number].end());
  }
  return times;
}

}  // namespace xenoscope::report
