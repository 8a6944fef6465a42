// The interface of an analysis: it subscribes to what it needs of the ordered stream, counts, and
// describes the counts. docs/writing-an-analysis.md shows one in a page.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "analysis/bounded_table.h"
#include "analysis/document.h"
#include "base/resolver.h"
#include "base/state_snapshot.h"
#include "correlate/clocks.h"
#include "correlate/timeline.h"
#include "trace/cursor.h"
#include "trace/dialect.h"
#include "trace/record.h"
#include "trace/unread_counts.h"
#include "trace/volume.h"

namespace xenoscope::analysis {

// A record with the vCPU that it belongs to, before the timeline has taken the record.
struct AttributedRecord {
  const trace::Record& record;
  // The vCPU that runs on the record's pCPU; null where the trace does not say.
  const correlate::VcpuTrack* vcpu;
};

class Subscriber;
// A function that hands a record to a subscriber whose class it knows.
using RecordCallback = void(Subscriber&, const AttributedRecord&);

// What an analysis needs beside its counts to describe them.
struct TraceMetadata {
  trace::Dialect dialect;  // vendor and version of Xen, for names
  Clock clock;
  TscRange range;                // time from the first to the last record, in cycles
  Resolver* resolver = nullptr;  // the names of guests' addresses; may be null
  trace::Volume volume{};        // the records of each event
  uint64_t vcpus = 0;            // number of vCPUs that were seen; 0 before the end of the pass
  // Clocks that differ; searched for at the end of the pass where the timeline has faults.
  std::vector<correlate::ClockSkew> skews{};
  trace::UnreadCounts unread{};  // known at the end of the pass
};

// What a call may change in an analysis. The trace is divided over threads by time. A thread that
// begins in the middle first follows a stretch before its part (its warm-up), in which only state
// changes; then it counts.
enum class UpdateScope : uint8_t {
  kMetrics,  // metrics only: the analysis is not called during a warm-up
  kState,    // also what the analysis remembers, such as when an interval began
};

// The records and intervals that an analysis subscribes to.
class Subscriptions {
 public:
  // `take` is called instead of the subscriber's OnRecord (see Mergeable::Call).
  void Record(trace::Event event, UpdateScope scope = UpdateScope::kMetrics,
              RecordCallback* take = nullptr) {
    events_.push_back({event, scope, take});
  }
  void RunstateIntervals(UpdateScope scope = UpdateScope::kMetrics) { runs_ = scope; }
  void Segments(UpdateScope scope = UpdateScope::kMetrics) { segments_ = scope; }
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
  std::optional<UpdateScope> segments_;
  std::optional<UpdateScope> exits_;
  std::optional<UpdateScope> states_;
  std::optional<UpdateScope> entries_;
  std::optional<UpdateScope> losses_;
};

// A receiver of records and intervals. It is called for what it has subscribed to, in its order.
class Subscriber {
 public:
  virtual ~Subscriber() = default;
  virtual void Subscribe(Subscriptions& subscriptions) const = 0;
  // Returns the order that it needs. kGroups: all that concerns one domain, or one pCPU and the
  // vCPUs that run or wait there, comes in the order of time, and so do losses; but records and
  // exits of different pCPUs, and states and runstate intervals of vCPUs that have neither in
  // common, come in any order. kCrossing: states and runstate intervals of all vCPUs come in the
  // order of time. On many pCPUs kTime costs most of a pass, and kCrossing half of one.
  [[nodiscard]] virtual trace::RecordOrder order() const { return trace::RecordOrder::kTime; }

  // Takes a record of a subscribed event, before the timeline has taken it.
  virtual void OnRecord(const AttributedRecord& /*moment*/) {}
  // Returns what to call for a record: OnRecord, or a function of the class itself, which saves the
  // virtual call.
  [[nodiscard]] virtual RecordCallback* DirectCallback() const {
    return [](Subscriber& self, const AttributedRecord& attributed) { self.OnRecord(attributed); };
  }
  // Take intervals when the timeline completes them. Where a trace is divided over threads,
  // segments of idle vCPUs may begin too late.
  virtual void OnRunstateInterval(const correlate::RunstateInterval& /*interval*/) {}
  virtual void OnSegment(const correlate::Segment& /*segment*/) {}
  virtual void OnExit(const correlate::ExitArc& /*arc*/) {}
  // Takes the change of a vCPU from the state `before` to its present one.
  virtual void OnState(const correlate::VcpuTrack& /*vcpu*/, correlate::TimelineState /*before*/) {}
  // Takes the instant when a vCPU enters its guest again, after any subscriber awaited that
  // (VcpuTrack::AwaitEntry).
  virtual void OnEntry(const correlate::VcpuTrack& /*vcpu*/, Tsc /*at*/) {}
  // Takes a loss: records of a pCPU are missing from here on, or its trace goes on.
  virtual void OnLoss(const trace::Item& /*item*/) {}
  // Ends the stream at `end`.
  virtual void Finish(Tsc /*end*/) {}
};

// A subscriber that describes its figures, and can add those of two successive parts of a trace.
// Its figures must not depend on the order of different pCPUs' records.
class Analysis : public Subscriber {
 public:
  [[nodiscard]] trace::RecordOrder order() const override { return trace::RecordOrder::kGroups; }
  // Begins to count: the warm-up has ended. Drops figures, keeps state and open intervals.
  // `timeline` is as it is at this instant.
  virtual void StartCounting(const correlate::Timeline& /*timeline*/) {}
  // Writes the state that influences what will be counted, without what MergeFrom makes up for. Two
  // analyses of a class with equal state count the same from then on.
  virtual void SaveState(StateSnapshot& /*out*/) const {}
  // Ends the part of the trace that this analysis counts, for now: it may count more, and is then
  // called again. `timeline` is as it is at this instant.
  virtual void StopCounting(const correlate::Timeline& /*timeline*/) {}
  // Adds the figures of `earlier`, an analysis of the same class that counted up to where this one
  // started, with the same saved state there. Called before Finish, for different analyses at the
  // same time.
  virtual void MergeFrom(Analysis& earlier) = 0;
  // Returns the budgets of its tables, which are the analysis's own. If one is not enough, the
  // trace is analysed again with divided budgets; if one has cut a later part, without partitions.
  [[nodiscard]] virtual std::vector<EntryBudget*> Budgets() { return {}; }
  // Returns whether the figures depend on the order of different pCPUs' records for another reason:
  // then the trace is analysed again in the order of time.
  [[nodiscard]] virtual bool DependsOnOrder() const { return false; }

  // Returns the kinds of groups that it may add, in their order.
  [[nodiscard]] virtual std::vector<GroupInfo> Groups() const = 0;
  // Adds domains that are to be described even if no vCPU of theirs was seen.
  virtual void AddDomains(std::set<DomainId>& /*domains*/) const {}
  // Each adds its groups where there is something to show. Called after Finish and MergeFrom;
  // different domains may be described at the same time.
  virtual void DescribeTrace(const TraceMetadata& /*metadata*/, Section& /*out*/) const {}
  virtual void DescribeDomain(DomainId /*domain*/, const TraceMetadata& /*metadata*/,
                              Section& /*out*/) const {}
  virtual void DescribeVcpu(VcpuRef /*vcpu*/, const TraceMetadata& /*metadata*/,
                            Section& /*out*/) const {}
};

// The base class of analyses: it implements MergeFrom by a method Merge(Self& earlier) of the
// class.
template <typename Self>
class Mergeable : public Analysis {
 public:
  void MergeFrom(Analysis& earlier) final {
    static_cast<Self&>(*this).Merge(static_cast<Self&>(earlier));
  }
  [[nodiscard]] RecordCallback* DirectCallback() const final {
    return [](Subscriber& self, const AttributedRecord& attributed) {
      static_cast<Self&>(self).Self::OnRecord(attributed);
    };
  }

 protected:
  // Wraps a method as a callback. A callback for each frequent event spares the processor an
  // indirect jump that it cannot predict.
  template <void (Self::*kMethod)(const AttributedRecord&)>
  static void Call(Subscriber& self, const AttributedRecord& attributed) {
    (static_cast<Self&>(self).*kMethod)(attributed);
  }
};

}  // namespace xenoscope::analysis
