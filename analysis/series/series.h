// A series: one quantity over intervals of time, in lines ("d1", "VMEXIT_CPUID"). It is an analysis
// that adds to sums; series_pass.h cuts the time. analysis/series/series_registry.h lists them.
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

namespace xenoscope::analysis {

// The domains asked for; all when empty.
struct DomainFilter {
  std::vector<DomainId> only;

  bool Wants(DomainId domain) const {
    return only.empty() || std::find(only.begin(), only.end(), domain) != only.end();
  }
};

class Series : public Subscriber {
 public:
  explicit Series(DomainFilter filter) : filter_(std::move(filter)) {}

  // The interval at hand ends at `end`: adds, with IntervalSums::Carry, the part of what is open.
  virtual void OnIntervalEnd(const correlate::Timeline& /*timeline*/, Tsc /*end*/) {}
  // What people call the line of this key.
  virtual std::string LineName(uint64_t key, const TraceMetadata& metadata) const = 0;

  IntervalSums& sums() { return sums_; }

 protected:
  bool Wants(DomainId domain) const { return filter_.Wants(domain); }

 private:
  DomainFilter filter_;
  IntervalSums sums_;
};

enum class Quantity : uint8_t { kTime, kCount };

struct SeriesInfo {
  std::string_view name;   // stable: --series, CSV and JSON
  std::string_view title;  // of a picture
  std::string_view about;  // one line for --list
  Quantity quantity = Quantity::kCount;
  bool parts = true;  // the lines are parts of a whole: pictures stack them
  std::unique_ptr<Series> (*make)(DomainFilter) = nullptr;
};

// A vCPU and what it is about, packed as a key: 16 bits of domain, 32 of vCPU, 16 of `what`.
constexpr uint64_t KeyOf(VcpuRef vcpu, uint64_t what) {
  return uint64_t{vcpu.domain.value} << 48 | uint64_t{vcpu.vcpu.value & 0xffffffff} << 16 | what;
}
constexpr VcpuRef VcpuOfKey(uint64_t key) {
  return {DomainId{static_cast<uint16_t>(key >> 48)},
          VcpuId{static_cast<uint32_t>(key >> 16 & 0xffffffff)}};
}
// A domain and what it is about, packed as a key: 48 bits of `what`.
constexpr uint64_t KeyOf(DomainId domain, uint64_t what) {
  return uint64_t{domain.value} << 48 | (what & 0xffffffffffff);
}
constexpr DomainId DomainOfKey(uint64_t key) { return {static_cast<uint16_t>(key >> 48)}; }
constexpr uint64_t WhatOfKey(uint64_t key) { return key & 0xffffffffffff; }

}  // namespace xenoscope::analysis
