// A report's computation: subscribes to what it needs of the ordered stream, and describes what it
// found. docs/writing-an-analysis.md shows one in a page.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "analysis/document.h"
#include "base/resolver.h"
#include "base/state_snapshot.h"
#include "correlate/clocks.h"
#include "correlate/timeline.h"
#include "trace/dialect.h"
#include "trace/record.h"
#include "trace/volume.h"

namespace xenoscope::analysis {

// The stream at one record: what is known before the timeline has taken it.
struct AttributedRecord {
  const trace::Record& record;
  // Who runs on the record's pCPU; null where the trace does not tell.
  const correlate::VcpuTrack* vcpu;
};

class Subscriber;
// Hands a record to a subscriber whose class it knows.
using RecordCallback = void(Subscriber&, const AttributedRecord&);

// What describing needs beside the counts.
struct TraceMetadata {
  trace::Dialect dialect;  // vendor and version, for names
  Clock clock;
  TscRange range;                             // of the trace
  Resolver* resolver = nullptr;               // names guests' addresses; may be null
  trace::Volume volume{};                     // how often there was which event
  uint64_t vcpus = 0;                         // how many were seen; 0 before the end
  std::vector<correlate::ClockSkew> skews{};  // clocks that differ; looked for at the end
};

// What a call changes in an analysis. The trace is divided over threads by time; a thread that
// begins in the middle first follows, for some time before that, what changes the state, and counts
// from there on.
enum class UpdateScope : uint8_t {
  kMetrics,  // only what is counted: no call for what comes before the thread's own part
  kState,    // also what is remembered for later, such as since when something lasts
};

// Which records and intervals an analysis is called for.
class Subscriptions {
 public:
  // `take`: called instead of the subscriber's OnRecord (Mergeable::Call).
  void Record(trace::Event event, UpdateScope scope = UpdateScope::kMetrics,
              RecordCallback* take = nullptr) {
    events_.push_back({event, scope, take});
  }
  void RunstateIntervals(UpdateScope scope = UpdateScope::kMetrics) { runs_ = scope; }
  void Exits(UpdateScope scope = UpdateScope::kMetrics) { exits_ = scope; }
  void States(UpdateScope scope = UpdateScope::kMetrics) { states_ = scope; }
  void Entries(UpdateScope scope = UpdateScope::kMetrics) { entries_ = scope; }
  void Losses(UpdateScope scope = UpdateScope::kMetrics) { losses_ = scope; }

 private:
  friend class Dispatcher;
  struct EventSubscription {
    trace::Event event;
    UpdateScope scope;
    RecordCallback* take;
  };
  std::vector<EventSubscription> events_;
  std::optional<UpdateScope> runs_;
  std::optional<UpdateScope> exits_;
  std::optional<UpdateScope> states_;
  std::optional<UpdateScope> entries_;
  std::optional<UpdateScope> losses_;
};

// Is called for what it has subscribed to, in the order of time.
class Subscriber {
 public:
  virtual ~Subscriber() = default;
  virtual void Subscribe(Subscriptions& subscriptions) const = 0;

  // A record of a subscribed event, before the timeline has taken it.
  virtual void OnRecord(const AttributedRecord& /*moment*/) {}
  // What to call for a record: OnRecord, or its class's own without the way through a table.
  virtual RecordCallback* DirectCallback() const {
    return [](Subscriber& self, const AttributedRecord& attributed) { self.OnRecord(attributed); };
  }
  // Intervals as the timeline completes them.
  virtual void OnRunstateInterval(const correlate::RunstateInterval& /*interval*/) {}
  virtual void OnExit(const correlate::ExitArc& /*arc*/) {}
  // A vCPU has entered its state.
  virtual void OnState(const correlate::VcpuTrack& /*vcpu*/, correlate::TimelineState /*before*/) {}
  // A vCPU goes on in its guest whose entry was awaited, by whomever (VcpuTrack::AwaitEntry).
  virtual void OnEntry(const correlate::VcpuTrack& /*vcpu*/, Tsc /*at*/) {}
  // Records of a pCPU are lost from here, or its trace goes on.
  virtual void OnLoss(const trace::Item& /*item*/) {}
  // The stream has ended at `end`.
  virtual void Finish(Tsc /*end*/) {}
};

// A subscriber whose figures of two parts of a trace can be added, and that describes them.
class Analysis : public Subscriber {
 public:
  // What comes from here on counts; what changed the state before has been followed. Drops the
  // figures of that, keeps what goes on. `timeline` is as it is at this instant.
  virtual void StartCounting(const correlate::Timeline& /*timeline*/) {}
  // What it knows now of what came before that matters for what it will count; not what MergeFrom()
  // makes up for. Whoever knows the same counts the same.
  virtual void SaveState(StateSnapshot& /*out*/) const {}
  // The part of the trace that this one counts has ended, at an instant when the timeline is so.
  virtual void StopCounting(const correlate::Timeline& /*timeline*/) {}
  // Takes over the figures of `earlier`, an analysis of the same class that counted up to where
  // this one started counting, and remembered the same then. Called before Finish.
  virtual void MergeFrom(Analysis& earlier) = 0;

  // Domains to describe though no vCPU of theirs may have been seen.
  virtual void AddDomains(std::set<DomainId>& /*domains*/) const {}
  // Each adds its groups where it has something to say. Called after Finish and MergeFrom.
  virtual void DescribeTrace(const TraceMetadata& /*metadata*/, Section& /*out*/) const {}
  virtual void DescribeDomain(DomainId /*domain*/, const TraceMetadata& /*metadata*/,
                              Section& /*out*/) const {}
  virtual void DescribeVcpu(VcpuRef /*vcpu*/, const TraceMetadata& /*metadata*/,
                            Section& /*out*/) const {}
};

// What analyses are made from: MergeFrom() by a Merge(Self& earlier) with their own class.
template <typename Self>
class Mergeable : public Analysis {
 public:
  void MergeFrom(Analysis& earlier) final {
    static_cast<Self&>(*this).Merge(static_cast<Self&>(earlier));
  }
  RecordCallback* DirectCallback() const final {
    return [](Subscriber& self, const AttributedRecord& attributed) {
      static_cast<Self&>(self).Self::OnRecord(attributed);
    };
  }

 protected:
  // A function that calls this method: one for each frequent event spares the processor a jump that
  // it cannot foretell.
  template <void (Self::*kMethod)(const AttributedRecord&)>
  static void Call(Subscriber& self, const AttributedRecord& attributed) {
    (static_cast<Self&>(self).*kMethod)(attributed);
  }
};

}  // namespace xenoscope::analysis
