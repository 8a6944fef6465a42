#include "correlate/difference.h"

#include <cmath>
#include <cstddef>

#include "correlate/multiple_comparisons.h"

namespace xenoscope::correlate {
namespace {

std::vector<double> Corrected(const std::vector<double>& p_values) {
  return p_values.size() > kMaxHolmTests ? BenjaminiHochberg(p_values) : Holm(p_values);
}

// Returns by how many standard deviations the value is off. Exact values differ or do not.
double Deviations(double off, double deviation) {
  if (deviation > 0) return off / deviation;
  return off == 0 ? 0 : std::copysign(HUGE_VAL, off);
}

}  // namespace

std::vector<Difference> Compare(std::span<const EstimatePair> pairs) {
  std::vector<Difference> differences;
  std::vector<double> p_values;
  for (const EstimatePair& pair : pairs) {
    Difference& difference = differences.emplace_back();
    difference.value = pair.after.value - pair.before.value;
    const double deviation = std::sqrt(pair.before.variance + pair.after.variance);
    difference.low = difference.value - kNormal95 * deviation;
    difference.high = difference.value + kNormal95 * deviation;
    // The two-sided p of the normal distribution.
    const double z = std::abs(Deviations(difference.value, deviation));
    p_values.push_back(std::erfc(z / std::sqrt(2)));
  }
  const std::vector<double> corrected = Corrected(p_values);
  for (size_t i = 0; i < differences.size(); ++i) differences[i].p = corrected[i];
  return differences;
}

std::vector<double> ChanceOfAbove(std::span<const Estimated> values, double level) {
  std::vector<double> p_values;
  p_values.reserve(values.size());
  for (const Estimated& each : values) {
    const double z = Deviations(each.value - level, std::sqrt(each.variance));
    // A value that is known to be at the level is not above it.
    p_values.push_back(each.variance == 0 && z == 0 ? 1 : std::erfc(z / std::sqrt(2)) / 2);
  }
  return Corrected(p_values);
}

Estimated UnseenShare(double samples) {
  const double zz = kNormal95 * kNormal95;
  const double shrunk = zz / 2 / (samples + zz);
  return {0, shrunk * (1 - shrunk) / (samples + zz)};
}

}  // namespace xenoscope::correlate
