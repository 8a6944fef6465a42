#include "correlate/guest_clocks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "correlate/timeline.h"
#include "correlate/timeline_pass.h"
#include "trace/ordered_stream.h"

namespace xenoscope::correlate {
namespace {

constexpr size_t kMaxHistories = 1024;  // of vCPUs, and of numbers of domains
constexpr size_t kMaxRanges = 4096;     // the latest of a vCPU's history
constexpr size_t kMaxPending = 4096;    // events of one timeslice that wait for its end
// The events that disagree without a proven epoch before a number is taken for no clock. Most
// numbers are none, and each such event costs a walk over its vCPU's history.
constexpr uint64_t kMostDisagreeing = 4096;

// An event of a guest whose first 8 bytes may be the guest's TSC.
struct GuestMark {
  uint32_t number = 0;
  uint64_t guest = 0;  // the guest's TSC, in its cycles
  Tsc at;              // the time of the record
};

using Ranges = RunningRanges;

// The events of one number of a domain.
class Epochs {
 public:
  void Add(const GuestMark& event, const Ranges& ranges) {
    if (current_.events == 0 && outside_ >= kMostDisagreeing) {
      ++outside_;
    } else if (Agree(current_, event, ranges)) {
      DropNext();  // its events were exceptions, not another offset
    } else if (Agree(next_, event, ranges)) {
      if (IsProven(next_)) BeginEpoch();
    } else if (++disagreeing_ >= next_.events) {
      // Most of the latest events must agree (Boyer and Moore's majority vote).
      --disagreeing_;
      DropNext();
      Begin(next_, event, ranges);
    }
  }
  // Counts an event of which nothing is known.
  void Skip() { ++unknown_; }

  // Returns the epochs that are proven; none if most events are in none.
  DomainClock Finish(DomainId domain, uint32_t number) {
    DropNext();
    DomainClock clock{.domain = domain,
                      .numbers = {number},
                      .epochs = {},
                      .outside = outside_,
                      .unknown = unknown_};
    clock.epochs = std::move(past_);
    if (current_.events > 0) clock.epochs.push_back(std::move(current_));
    uint64_t events = 0;
    for (const ClockEpoch& epoch : clock.epochs) events += epoch.events;
    if (events <= clock.outside) clock.epochs.clear();
    return clock;
  }

 private:
  static bool IsProven(const ClockEpoch& epoch) {
    return epoch.events >= kLeastClockEvents && epoch.end - epoch.begin > 2 * kMaxEventAge;
  }
  // Narrows the epoch by the event if they agree.
  static bool Agree(ClockEpoch& epoch, const GuestMark& event, const Ranges& ranges) {
    if (epoch.ranges.empty()) return false;
    const OffsetRange limits{epoch.ranges.front().min, epoch.ranges.back().max};
    std::vector<OffsetRange> both =
        Intersection(epoch.ranges, AllowedOffsets(event.guest, ranges, Oldest(event), limits));
    if (both.empty()) return false;
    epoch.ranges = std::move(both);
    epoch.end = event.at;
    ++epoch.events;
    return true;
  }
  // Returns the first time at which the event's guest can have read its TSC.
  static Tsc Oldest(const GuestMark& event) {
    return Tsc{event.at.value - std::min(event.at.value, kMaxEventAge)};
  }
  void Begin(ClockEpoch& epoch, const GuestMark& event, const Ranges& ranges) {
    constexpr OffsetRange kAll{std::numeric_limits<int64_t>::min(),
                               std::numeric_limits<int64_t>::max()};
    std::vector<OffsetRange> allowed = AllowedOffsets(event.guest, ranges, Oldest(event), kAll);
    if (allowed.empty()) return Skip();
    epoch = {.begin = event.at, .end = event.at, .ranges = std::move(allowed), .events = 1};
  }
  void BeginEpoch() {
    if (current_.events > 0) past_.push_back(std::move(current_));
    current_ = std::move(next_);
    next_ = {};
    DropNext();
  }
  void DropNext() {
    outside_ += next_.events + disagreeing_;
    next_ = {};
    disagreeing_ = 0;
  }

  std::vector<ClockEpoch> past_;
  ClockEpoch current_;        // proven, if it has events
  ClockEpoch next_;           // of the latest events that disagree with current_, those that agree
  uint64_t disagreeing_ = 0;  // and the others
  uint64_t outside_ = 0;
  uint64_t unknown_ = 0;
};

// Adds the events of `more` to the clock, of the same domain, if one offset explains both.
bool Combine(DomainClock& clock, const DomainClock& more) {
  if (clock.epochs.size() != 1 || more.epochs.size() != 1) return false;
  ClockEpoch& epoch = clock.epochs[0];
  const ClockEpoch& other = more.epochs[0];
  std::vector<OffsetRange> both = Intersection(epoch.ranges, other.ranges);
  if (both.empty()) return false;
  epoch = {.begin = std::min(epoch.begin, other.begin),
           .end = std::max(epoch.end, other.end),
           .ranges = std::move(both),
           .events = epoch.events + other.events};
  clock.numbers.insert(clock.numbers.end(), more.numbers.begin(), more.numbers.end());
  clock.outside += more.outside;
  clock.unknown += more.unknown;
  return true;
}

// Collects where guests can have run, and what their events allow.
class ClockFinder final : public TimelineObserver {
 public:
  [[nodiscard]] bool WantsExits() const override { return false; }
  [[nodiscard]] bool WantsMarks() const override { return false; }

  void OnSegment(const Segment& segment) override {
    if (segment.kind == SegmentKind::kExit || segment.kind == SegmentKind::kResume) return;
    AddRange(segment.vcpu, segment.range);
  }
  void OnRunstateInterval(const RunstateInterval& interval) override {
    // While records are lost, the guest may have run.
    if (interval.state != TimelineState::kLost && interval.state != TimelineState::kUnknown) return;
    AddRange(interval.vcpu, interval.range);
  }

  void OnEvent(const trace::Record& record, const VcpuTrack& vcpu) {
    if (record.payload.count() < 2 || IsIdle(vcpu.ref)) return;
    domains_.insert(vcpu.ref.domain);
    History* history = HistoryOf(vcpu.ref);
    if (history == nullptr) return;
    const GuestMark event{record.id & 0xfff, record.payload.Word64(0), record.tsc};
    if (vcpu.exit_open) {
      Take(vcpu.ref.domain, *history, event);  // the guest's time before the exit is known
    } else if (history->pending.size() < kMaxPending) {
      history->pending.push_back(event);
    } else if (Epochs* epochs = EpochsOf(vcpu.ref.domain, event.number)) {
      epochs->Skip();
    }
  }

  std::vector<DomainClock> Finish() {
    std::vector<DomainClock> clocks;
    for (auto& [key, epochs] : epochs_) {
      DomainClock clock = epochs.Finish(key.first, key.second);
      if (clock.epochs.empty()) continue;
      const bool same_domain = !clocks.empty() && clocks.back().domain == clock.domain;
      if (!same_domain || !Combine(clocks.back(), clock)) clocks.push_back(std::move(clock));
    }
    return clocks;
  }

 private:
  // What is known of a vCPU of a domain that has events.
  struct History {
    Ranges ranges;
    std::vector<GuestMark> pending;  // events in the range that has not ended
  };

  History* HistoryOf(VcpuRef vcpu) {
    const auto found = histories_.find(vcpu);
    if (found != histories_.end()) return &found->second;
    return histories_.size() < kMaxHistories ? &histories_[vcpu] : nullptr;
  }

  void AddRange(VcpuRef vcpu, TscRange range) {
    if (!domains_.contains(vcpu.domain)) return;
    History* history = HistoryOf(vcpu);
    if (history == nullptr) return;
    Ranges& ranges = history->ranges;
    while (!ranges.empty() &&
           (ranges.size() >= kMaxRanges || ranges.front().end + 2 * kMaxEventAge < range.begin)) {
      ranges.pop_front();
    }
    ranges.push_back(range);
    for (const GuestMark& event : history->pending) Take(vcpu.domain, *history, event);
    history->pending.clear();
  }

  Epochs* EpochsOf(DomainId domain, uint32_t number) {
    const auto key = std::pair(domain, number);
    const auto found = epochs_.find(key);
    if (found != epochs_.end()) return &found->second;
    return epochs_.size() < kMaxHistories ? &epochs_[key] : nullptr;
  }
  void Take(DomainId domain, const History& history, const GuestMark& event) {
    if (Epochs* epochs = EpochsOf(domain, event.number)) epochs->Add(event, history.ranges);
  }

  absl::flat_hash_set<DomainId> domains_;  // those that have events
  absl::flat_hash_map<VcpuRef, History> histories_;
  std::map<std::pair<DomainId, uint32_t>, Epochs> epochs_;  // by domain and number
};

// Gives guests' events to the finder, and what says where guests ran to its timeline.
struct ClockHandler {
  ClockFinder& finder;
  Timeline& timeline;

  [[nodiscard]] trace::EventTargets<trace::AnyTarget> Events() const {
    auto events = HandledEvents(timeline, trace::kAnyTarget);
    events[static_cast<size_t>(trace::Event::kGuest)] = &trace::kAnyTarget;
    return events;
  }
  void TakeRecord(const trace::Record& record, const trace::AnyTarget& /*target*/) const {
    if (record.event != trace::Event::kGuest) return timeline.TakeRecord(record);
    const VcpuTrack* vcpu = timeline.Current(record.pcpu);
    if (vcpu != nullptr) finder.OnEvent(record, *vcpu);
  }
  void TakeNonRecord(const trace::Item& item) const { timeline.TakeNonRecord(item); }
};

}  // namespace

std::vector<DomainClock> FindGuestClocks(const trace::TraceFile& file) {
  ClockFinder finder;
  Timeline timeline(finder);
  ClockHandler handler{finder, timeline};
  trace::OrderedStream stream = file.Stream();
  stream.ForEach<false, trace::RecordOrder::kTime>(stream.kEnd, handler.Events(), handler);
  timeline.Finish();
  return finder.Finish();
}

}  // namespace xenoscope::correlate
