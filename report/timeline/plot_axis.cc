#include "report/timeline/plot_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace xenoscope::report {
namespace {

// Returns the smallest step of 1, 2 or 5 times a power of ten that is at least `min_step`.
double RoundStep(double min_step) {
  const double power = std::pow(10.0, std::floor(std::log10(min_step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= min_step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

struct Prefix {
  double scale;
  std::string_view unit;
};

}  // namespace

std::string Label(AxisKind kind, double value, double high) {
  constexpr Prefix kSecondsUnits[] = {{1, " s"}, {1e-3, " ms"}, {1e-6, " us"}, {1e-9, " ns"}};
  constexpr Prefix kNumbers[] = {{1e18, " E"}, {1e15, " P"}, {1e12, " T"}, {1e9, " G"},
                                 {1e6, " M"},  {1e3, " k"},  {1, ""}};
  constexpr std::string_view kStates[] = {"lost", "blocked", "offline", "runnable", "running"};
  if (value == 0 && kind != AxisKind::kState) return kind == AxisKind::kShare ? "0%" : "0";
  const auto scaled = [&](const auto& units) {
    Prefix chosen = std::end(units)[-1];
    for (const Prefix& prefix : units) {
      if (std::abs(high) >= prefix.scale * (1 - 1e-9)) {
        chosen = prefix;
        break;
      }
    }
    return fmt::format("{:.6g}{}", value / chosen.scale, chosen.unit);
  };
  switch (kind) {
    case AxisKind::kShare:
      return fmt::format("{:.6g}%", value * 100);
    case AxisKind::kSeconds:
      return scaled(kSecondsUnits);
    case AxisKind::kState:
      if (value < -1 || value > 3) return "";
      return std::string(kStates[static_cast<size_t>(value + 1)]);
    case AxisKind::kNumber:
    case AxisKind::kInteger:
      break;
  }
  return scaled(kNumbers);
}

double RoundUp(double value) {
  if (!(value > 0)) return 1;
  const double step = RoundStep(value / 10);
  return std::ceil(value / step * (1 - 1e-12)) * step;
}

std::vector<Tick> LinearTicks(AxisKind kind, double low, double high, size_t max_ticks) {
  std::vector<Tick> ticks;
  if (!(high > low) || max_ticks < 2) return ticks;
  double step = RoundStep((high - low) / static_cast<double>(max_ticks - 1));
  if (kind == AxisKind::kInteger || kind == AxisKind::kState) step = std::max(step, 1.0);
  const double first = std::ceil(low / step - 1e-9);
  const double last = std::floor(high / step + 1e-9);
  for (double i = first; i <= last && ticks.size() < max_ticks; ++i) {
    ticks.push_back({i * step, Label(kind, i * step, high)});
  }
  return ticks;
}

std::vector<Tick> LogTicks(AxisKind kind, double low, double high, size_t max_ticks) {
  std::vector<Tick> ticks;
  if (!(low > 0) || !(high > low) || max_ticks < 2) return ticks;
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::ceil(std::log10(high)));
  const auto decades = static_cast<size_t>(last - first);
  const int every = static_cast<int>(decades / max_ticks) + 1;
  const bool between = decades * 3 <= max_ticks;
  for (int power = first; power <= last; power += every) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && !between) continue;
      const double at = factor * std::pow(10.0, power);
      if (at < low * (1 - 1e-9) || at > high * (1 + 1e-9)) continue;
      ticks.push_back({at, Label(kind, at, at)});
    }
  }
  return ticks;
}

void BrokenAxis::Add(uint64_t address) {
  const uint64_t chunk = address >> shift_;
  if (chunk == last_) return;
  last_ = chunk;
  const auto at = std::lower_bound(chunks_.begin(), chunks_.end(), chunk);
  if (at != chunks_.end() && *at == chunk) return;
  chunks_.insert(at, chunk);
  while (chunks_.size() > kMaxChunks) {
    ++shift_;
    for (uint64_t& known : chunks_) known >>= 1;
    chunks_.erase(std::unique(chunks_.begin(), chunks_.end()), chunks_.end());
    last_ = UINT64_MAX;
  }
}

// Small gaps between chunks become a part of the island, so that near pages are shown together.
void BrokenAxis::Finish() {
  constexpr uint64_t kFilledGap = 16;  // the greatest distance, in chunks, that is filled
  std::vector<uint64_t> filled;
  for (const uint64_t chunk : chunks_) {
    if (!filled.empty() && chunk - filled.back() <= kFilledGap) {
      while (filled.back() + 1 < chunk) filled.push_back(filled.back() + 1);
    }
    filled.push_back(chunk);
  }
  chunks_ = std::move(filled);
}

double BrokenAxis::Place(uint64_t address) const {
  if (chunks_.empty()) return 0;
  const uint64_t chunk = address >> shift_;
  const auto at = std::lower_bound(chunks_.begin(), chunks_.end(), chunk);
  const auto rank = static_cast<double>(at - chunks_.begin());
  const double within =
      static_cast<double>(address & ((uint64_t{1} << shift_) - 1)) / std::exp2(shift_);
  return std::min((rank + within) / static_cast<double>(chunks_.size()), 1 - 1e-9);
}

std::vector<Tick> BrokenAxis::Ticks(size_t max_ticks) const {
  struct AxisSegment {
    size_t first;
    size_t size;
  };
  std::vector<AxisSegment> axis;
  for (size_t i = 0; i < chunks_.size(); ++i) {
    if (i == 0 || chunks_[i] != chunks_[i - 1] + 1) axis.push_back({i, 0});
    ++axis.back().size;
  }
  std::stable_sort(axis.begin(), axis.end(),
                   [](const AxisSegment& a, const AxisSegment& b) { return a.size > b.size; });
  std::vector<Tick> ticks;
  const auto count = static_cast<double>(chunks_.size());
  const double nearest = 1.0 / static_cast<double>(max_ticks);
  for (const AxisSegment& segment : axis) {
    const double at = static_cast<double>(segment.first) / count;
    const bool free = std::none_of(ticks.begin(), ticks.end(), [&](const Tick& tick) {
      return std::abs(tick.at - at) < nearest;
    });
    if (free) ticks.push_back({at, fmt::format("0x{:x}", chunks_[segment.first] << shift_)});
  }
  std::sort(ticks.begin(), ticks.end(), [](const Tick& a, const Tick& b) { return a.at < b.at; });
  return ticks;
}

}  // namespace xenoscope::report
