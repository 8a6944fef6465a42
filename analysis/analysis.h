// A report's computation: subscribes to what it needs of the ordered stream, and describes what it
// found. docs/writing-an-analysis.md shows one in a page.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "analysis/document.h"
#include "analysis/volume.h"
#include "base/resolver.h"
#include "correlate/timeline.h"
#include "trace/dialect.h"
#include "trace/record.h"

namespace xenoscope::analysis {

// The stream at one record: what is known before the timeline has taken it.
struct Moment {
  const trace::Record& record;
  // Who runs on the record's pCPU; null where the trace does not tell.
  const correlate::VcpuTrack* vcpu;
};

// What describing needs beside the counts.
struct Facts {
  trace::Dialect dialect;  // vendor and version, for names
  Clock clock;
  TscRange range;                // of the trace
  Resolver* resolver = nullptr;  // names guests' addresses; may be null
  Volume volume{};               // how often there was which event
  uint64_t vcpus = 0;            // how many were seen; 0 before the end
};

class Analysis;

// Which records and intervals an analysis is called for.
class Subscriptions {
 public:
  void Record(trace::Event event) { events_.push_back(event); }
  void Runs() { runs_ = true; }
  void Exits() { exits_ = true; }
  void States() { states_ = true; }
  void Losses() { losses_ = true; }

  // Whether it is about what HVM guests do: about half of the work, and independent of the rest.
  bool OfHvm() const {
    return exits_ || std::any_of(events_.begin(), events_.end(), [](trace::Event event) {
             return trace::Info(event).trace_class == trace::TraceClass::kHvm;
           });
  }

 private:
  friend class Dispatcher;
  std::vector<trace::Event> events_;
  bool runs_ = false;
  bool exits_ = false;
  bool states_ = false;
  bool losses_ = false;
};

class Analysis {
 public:
  virtual ~Analysis() = default;
  virtual void Subscribe(Subscriptions& subscriptions) const = 0;

  // A record of a subscribed event, before the timeline has taken it.
  virtual void OnRecord(const Moment& /*moment*/) {}
  // Intervals as the timeline completes them.
  virtual void OnRun(const correlate::RunInterval& /*interval*/) {}
  virtual void OnExit(const correlate::ExitArc& /*arc*/) {}
  // A vCPU has entered its state.
  virtual void OnState(const correlate::VcpuTrack& /*vcpu*/, correlate::RunState /*before*/) {}
  // Records of a pCPU are lost from here, or its trace goes on.
  virtual void OnLoss(const trace::Item& /*item*/) {}
  // The stream has ended at `end`.
  virtual void Finish(Tsc /*end*/) {}

  // Domains to describe though no vCPU of theirs may have been seen.
  virtual void AddDomains(std::set<DomainId>& /*domains*/) const {}
  // Each adds its groups where it has something to say. Called after Finish.
  virtual void DescribeTrace(const Facts& /*facts*/, Section& /*out*/) const {}
  virtual void DescribeDomain(DomainId /*domain*/, const Facts& /*facts*/, Section& /*out*/) const {
  }
  virtual void DescribeVcpu(VcpuRef /*vcpu*/, const Facts& /*facts*/, Section& /*out*/) const {}
};

}  // namespace xenoscope::analysis
