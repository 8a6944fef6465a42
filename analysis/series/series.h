// A series: one quantity over intervals of time, in lines ("d1", "VMEXIT_CPUID"). It is an analysis
// that adds to sums; series_pass.h cuts the time into intervals.
// analysis/series/series_registry.h lists all series.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/series/interval_sums.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/timeline.h"
#include "trace/figures.h"

namespace xenoscope::analysis {

// The domains that a series is restricted to; empty: all domains.
struct DomainFilter {
  std::vector<DomainId> only;

  [[nodiscard]] bool Wants(DomainId domain) const {
    return only.empty() || std::find(only.begin(), only.end(), domain) != only.end();
  }
};

// The base class of series. Their figures are read from the sums, and not described as groups.
class Series : public Analysis {
 public:
  explicit Series(DomainFilter filter) : filter_(std::move(filter)) {}

  void StartCounting(const correlate::Timeline& /*timeline*/) override { sums_.Clear(); }
  void MergeFrom(Analysis& earlier) override {
    sums_.Merge(static_cast<const Series&>(earlier).sums_);
  }
  // Which keys have lines of their own does.
  [[nodiscard]] bool DependsOnOrder() const override { return sums_.is_full(); }
  [[nodiscard]] std::vector<GroupInfo> Groups() const override { return {}; }

  // Ends the current interval at `end`: adds, by IntervalSums::Carry, the parts of open ranges.
  virtual void OnIntervalEnd(const correlate::Timeline& /*timeline*/, Tsc /*end*/) {}
  // Returns the name of the line of this key, for people.
  [[nodiscard]] virtual std::string LineName(uint64_t key, const TraceMetadata& metadata) const = 0;

  IntervalSums& sums() { return sums_; }
  [[nodiscard]] const IntervalSums& sums() const { return sums_; }

 protected:
  [[nodiscard]] bool Wants(DomainId domain) const { return filter_.Wants(domain); }

 private:
  DomainFilter filter_;
  IntervalSums sums_;
};

enum class Quantity : uint8_t { kTime, kCount };

struct SeriesInfo {
  std::string_view name;   // stable: the name after --series, in CSV and in JSON
  std::string_view title;  // heading of a picture
  std::string_view about;  // explanation in one line, for --list
  Quantity quantity = Quantity::kCount;
  bool parts = true;  // whether the lines are parts of a whole, which pictures stack
  // Whether a part of the trace shows what it adds to the sums: not where that depends on what a
  // vCPU did long before.
  bool local = true;
  trace::Figure figure = trace::Figure::kRunstates;  // the events that it is made from
  std::unique_ptr<Series> (*make)(DomainFilter) = nullptr;
};

// Packs a vCPU and a number as a key: 16 bits of domain, 32 of vCPU, 16 of `what`.
constexpr uint64_t KeyOf(VcpuRef vcpu, uint64_t what) {
  return uint64_t{vcpu.domain.value} << 48 | uint64_t{vcpu.vcpu.value & 0xffffffff} << 16 | what;
}
constexpr VcpuRef VcpuOfKey(uint64_t key) {
  return {DomainId{static_cast<uint16_t>(key >> 48)},
          VcpuId{static_cast<uint32_t>(key >> 16 & 0xffffffff)}};
}
// Packs a domain and a number as a key: 16 bits of domain, 48 of `what`.
constexpr uint64_t KeyOf(DomainId domain, uint64_t what) {
  return uint64_t{domain.value} << 48 | (what & 0xffffffffffff);
}
constexpr DomainId DomainOfKey(uint64_t key) { return {static_cast<uint16_t>(key >> 48)}; }
constexpr uint64_t WhatOfKey(uint64_t key) { return key & 0xffffffffffff; }

}  // namespace xenoscope::analysis
