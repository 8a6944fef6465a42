// Traces of random records, for tests of what does not depend on their order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "tests/unit/analysis/record_ids.h"
#include "tests/unit/trace/trace_builder.h"

namespace xenoscope::analysis {

// Makes traces of random records: no two at one instant, changes of runstate that contradict others
// as often as not, vCPUs on several pCPUs at once, ends of domains, losses. Idle vCPUs, which do
// not write cr3, run in every other one. Each four pCPUs have three domains of their own; one
// record of a hundred is about those of others.
class RandomTrace {
 public:
  explicit RandomTrace(uint32_t seed, uint32_t pcpus = kPcpusOfDomain)
      : pcpus_(pcpus), has_idle_(seed % 2 == 0), random_(seed) {
    std::vector<std::vector<std::vector<uint32_t>>> records(pcpus_);
    for (uint32_t i = 0; i < 375 * pcpus_; ++i) {
      tsc_ += 2 + 2 * Below(15);
      const uint32_t pcpu = Below(pcpus_);
      Add(pcpu, records[pcpu]);
      if (records[pcpu].size() > 20 + Below(200)) {
        trace_.Window(pcpu, std::exchange(records[pcpu], {}));
      }
    }
    for (uint32_t pcpu = 0; pcpu < pcpus_; ++pcpu) trace_.Window(pcpu, records[pcpu]);
  }
  const trace::TraceBuilder& trace() const { return trace_; }

 private:
  static constexpr uint32_t kPcpusOfDomain = 4;

  uint32_t Below(uint32_t limit) { return std::uniform_int_distribution(0U, limit - 1)(random_); }
  uint32_t SomeVcpu(uint32_t pcpu) {
    return has_idle_ && Below(4) == 0 ? trace::Vcpu(trace::kIdle, pcpu)
                                      : trace::Vcpu(SomeDomain(pcpu), Below(2));
  }
  uint32_t SomeDomain(uint32_t pcpu) {
    if (pcpus_ > kPcpusOfDomain && Below(100) == 0) pcpu = Below(pcpus_);
    return 1 + pcpu / kPcpusOfDomain * 3 + Below(3);
  }
  void Add(uint32_t pcpu, std::vector<std::vector<uint32_t>>& to) {
    constexpr std::array kChanges = {trace::kRunnableToRunning, trace::kRunnableToRunning,
                                     trace::kRunningToRunnable, trace::kRunningToBlocked,
                                     trace::kBlockedToRunnable};
    switch (Below(16)) {
      case 0:
      case 1:
      case 2:
        return to.push_back(trace::Rec(kChanges[Below(kChanges.size())], tsc_, {SomeVcpu(pcpu)}));
      case 3:
        return to.push_back(trace::Rec(trace::kContinueRunning, tsc_, {SomeVcpu(pcpu)}));
      case 4:
        if (Below(5 * pcpus_) == 0)
          return to.push_back(trace::Rec(trace::kSchedDomRem, tsc_, {SomeDomain(pcpu)}));
        if (Below(5 * pcpus_) == 0) {
          const uint32_t first = tsc_ - 1 - 2 * Below(10);  // at no other record's instant
          return to.push_back(
              trace::Rec(kLostRecords, tsc_, {7, SomeDomain(pcpu) + (Below(2) << 16), first, 0}));
        }
        [[fallthrough]];
      case 5:
        return to.push_back(trace::Rec(kHypercall, tsc_, {1 + Below(40)}));
      case 6:
        return to.push_back(trace::Rec(kInjVirq, tsc_, {0x30 + Below(3), 0}));
      case 7:
        return to.push_back(trace::Rec(kVmexit, tsc_, {kVmxExternalInterrupt, Below(4) * 16, 0}));
      case 8:
      case 9:
        to.push_back(trace::Rec(kVmexit, tsc_, {kVmxCpuid + Below(3), Below(4) * 16, 0}));
        return to.push_back(trace::Rec(kCpuid, {Below(3), 0, 0, 0, 0, 0}));
      case 10:
        to.push_back(trace::Rec(kVmexit, tsc_, {kVmxCrAccess, 0, 0}));
        return to.push_back(has_idle_ ? trace::Rec(kHlt, {0})
                                      : trace::Rec(kCrWrite, {3, Below(3) << 12, 0}));
      case 11:
        return to.push_back(trace::Rec(kSchedWake, tsc_, {SomeDomain(pcpu), Below(2)}));
      case 12:
        return to.push_back(trace::Rec(kDecreaseReservation, tsc_, {1, 0, SomeDomain(pcpu)}));
      default:
        return to.push_back(trace::Rec(kVmentry, tsc_, {}));
    }
  }

  uint32_t pcpus_;
  bool has_idle_;
  std::mt19937 random_;
  uint32_t tsc_ = 1000;
  trace::TraceBuilder trace_;
};

}  // namespace xenoscope::analysis
