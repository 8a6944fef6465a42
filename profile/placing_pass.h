// The pass over a trace that places samples by it, and shows it to those who observe that.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "correlate/exit_samples.h"
#include "correlate/pcpu_groups.h"
#include "correlate/pipeline_observer.h"
#include "correlate/placing/placer.h"
#include "trace/cursor.h"
#include "trace/events.h"
#include "trace/ordered_stream.h"
#include "trace/record.h"
#include "trace/trace_file.h"

namespace xenoscope::profile {

// What takes the trace. `samples`, which are those that the placer gets, and `observer` may be
// null.
struct TraceTakers {
  correlate::Placer& placer;
  correlate::ExitSamples* samples = nullptr;
  correlate::PipelineObserver* observer = nullptr;
  std::span<correlate::TraceObserver* const> trace_observers{};
};

class PlacingPass {
 public:
  // `order` is that of the placer. An observer needs the order of time. Stretches before a deadline
  // that are shorter than `least_grouped` are not divided into groups of pCPUs.
  PlacingPass(const TraceTakers& takers, trace::RecordOrder order,
              Cycles least_grouped = correlate::kLeastGrouped);

  // Gives the trace to the takers: all that has to do with the time before `end`. It stops there
  // once what began before has ended: runs of vCPUs, VM exits and losses, or
  // correlate::kMostAfterEnd later. Records that no taker wants are passed over. Errors: the
  // observer's status.
  absl::Status Run(const trace::TraceFile& trace, Tsc end = trace::OrderedStream::kEnd);
  // Returns the time of the first record that Run has not read; nothing if it has read all.
  [[nodiscard]] std::optional<Tsc> unread_from() const { return unread_from_; }

 private:
  // Who wants the records of an event.
  struct Wanted {
    correlate::Placer::Taker placer{};
    bool samples = false;
    bool observer = false;
    uint32_t trace_observers = 0;  // correlate::WhoWants
  };
  // Takes what the stream has between the placer's deadlines.
  struct Handler {
    const TraceTakers& takers;
    // Gives the record to all but the placer.
    void Show(const trace::Record& record, const Wanted& wanted) const;
    void TakeRecord(const trace::Record& record, const Wanted& wanted) const;
    void TakeNonRecord(const trace::Item& item) const;
  };

  // Takes all that the stream has at a deadline of the placer.
  struct DeadlineHandler {
    PlacingPass& pass;
    void TakeRecord(const trace::Record& record, const trace::AnyTarget& target) const;
    void TakeNonRecord(const trace::Item& item) const;
  };

  // Returns the placer's deadline, or the time of an earlier look whether to stop, where the next
  // record is at `next`.
  [[nodiscard]] Tsc NextLook(Tsc next, Tsc due, Tsc end) const;
  // Whether nothing that comes has to do with the time before `end`.
  [[nodiscard]] bool HasAllBefore(Tsc end) const;
  // Gives the handler all that comes up to the time `through`, which is before the placer's
  // deadline.
  void TakeUpTo(trace::OrderedStream& stream, Tsc through, Handler& handler);

  TraceTakers takers_;
  trace::RecordOrder order_;
  Cycles least_grouped_;
  std::array<Wanted, trace::kEventCount> wanted_{};
  trace::EventTargets<Wanted> events_{};  // pointers into wanted_
  correlate::PcpuGroups groups_;
  bool begun_ = false;  // a record has been taken
  std::optional<Tsc> unread_from_;
};

}  // namespace xenoscope::profile
