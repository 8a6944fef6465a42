// Joins samples with the trace: when and where each was taken, and in which context. Exactly where
// the sample says when, by its NMI exit where it has one, else by weights over the places where it
// can have been (docs/method.md, sections 1 to 3).
//
// One pass over trace and samples together. Memory: the intervals of the timeline within the
// longest bracket, and the samples of one drain of one buffer.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "base/ids.h"
#include "base/mode.h"
#include "base/resolver.h"
#include "base/tsc.h"
#include "correlate/context.h"
#include "correlate/cross_checks.h"
#include "correlate/history_queue.h"
#include "correlate/losses.h"
#include "correlate/nmi_matching.h"
#include "correlate/ranks.h"
#include "correlate/run_queues.h"
#include "correlate/timeline.h"
#include "correlate/timeline_history.h"
#include "correlate/wakeup.h"
#include "recording/sample.h"
#include "trace/names.h"
#include "trace/record.h"

namespace xenoscope::correlate {

// How a place was found.
enum class Placement : uint8_t {
  kInstant,    // the sample said when
  kNmiExit,    // it is an NMI exit of the trace
  kAtExit,     // logged as guest, but taken as the guest left for another reason: method.md §2.3
  kStopped,    // the trace has the instant at which its vCPU was stopped to be read
  kBracketed,  // by the lengths of the intervals that agree with its mode
  kUntraced,   // there is no trace
};
inline constexpr size_t kPlacements = 6;
const char* ToString(Placement placement);

// Why a sample has no place.
enum class UnplacedReason : uint8_t {
  kOutsideTrace,   // its bracket ends before the trace begins, or begins after its end
  kUnknownVcpu,    // the trace never names its vCPU
  kNotRunning,     // its vCPU did not run within its bracket
  kModeDisagrees,  // it ran, but never in the sample's mode
  kTraceLost,      // records were lost where it must have been
  kOutOfOrder,     // it came later than its bracket's end allows; the timeline is forgotten there
};
inline constexpr size_t kUnplacedReasons = 6;
// Stable: the keys in JSON.
const char* ToString(UnplacedReason remainder);

// One place where a sample can have been. The weights of its places sum to 1.
struct Place {
  Context context;  // on whose account it is: at an exit, the exit's
  Context stratum;  // whose cycles it is a sample of (method.md §4.1)
  PcpuId pcpu;
  double weight = 0;
  double length = weight;  // the weight by lengths alone, before it was refined
};

struct PlacedSample {
  const recording::Sample* sample = nullptr;
  VcpuRef vcpu;         // on whose behalf: for a sample that only knows "Xen", who ran
  Address address = 0;  // repaired where the sample's is stale
  Placement placement = Placement::kBracketed;
  // Its cluster: the running interval where it was, or as many samples are as go by its length.
  uint64_t cluster = 0;
  std::span<const Place> places;
  std::optional<FunctionId> function{};  // once it has been looked up
  // When: the sample's own bracket, or what the trace has made of it: the instant of its NMI exit
  // or of its stop, or the time between the NMI exits before and after it.
  TscRange when{};
  uint64_t list = 0;   // samples with the same number have the same places; 0: of this one alone
  uint64_t count = 1;  // stands for so many samples, which its observer does not tell apart
};

// The function that the sample is in: the one that was looked up, else what the resolver says.
FunctionId FunctionOf(const PlacedSample& placed, Resolver& resolver);

// Receives each sample once, placed or not, and all traced time.
class PlacingObserver {
 public:
  virtual ~PlacingObserver() = default;
  virtual void OnPlaced(const PlacedSample& sample) = 0;
  virtual void OnUnplaced(const recording::Sample& sample, UnplacedReason why) = 0;
  // The vCPU spent `cycles` in the context, while samples were taken; in kLost: a pCPU did, and
  // `vcpu` means nothing. Of a vCPU and a context this may come in several parts, at any time.
  virtual void OnTraced(VcpuRef vcpu, Context context, Cycles cycles) = 0;
};

// Samples in the order of the ends of their brackets; those of one vCPU in the order in which they
// were taken.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  // The next one, which is there until the next call; null at the end.
  virtual const recording::Sample* Next() = 0;
};

struct PlacingOptions {
  // While samples were taken; only this time of the trace is given to OnTraced.
  TscRange sampled;
  // Of all brackets: how long the timeline has to be remembered.
  Cycles longest_bracket = 0;
  trace::Vendor vendor = trace::Vendor::kUnknown;
  LoggedRip logged_rip = LoggedRip::kOfExit;
  bool by_subreason = false;  // contexts tell what exits were about
  bool by_waiting = false;    // ... and who waited for the pCPU
  bool by_wakeup = false;     // ... and what woke the vCPU
};

struct PlacingCounts {
  uint64_t samples = 0;
  std::array<uint64_t, kPlacements> placed{};
  std::array<uint64_t, kUnplacedReasons> unplaced{};
  uint64_t repaired = 0;      // addresses that the exit record corrected
  uint64_t stale = 0;         // addresses known to be stale that nothing could correct
  uint64_t nmi_exits = 0;     // in the trace, while samples were taken
  uint64_t lost_records = 0;  // of the trace
  Cycles lost_time = 0;       // of pCPUs, in which records were lost
  uint64_t Attributed() const;
  uint64_t Unplaced() const;
};

// Of the running intervals where a sample can have been, one.
struct ClusterShare {
  Cycles until = 0;     // how much of all of them lies before this one's end
  uint64_t number = 0;  // RunstateInterval::number
};

class Placer : private TimelineObserver {
 public:
  // `samples`, `observer` and `timeline_observer`, which sees the placer's timeline, must outlive
  // the placer.
  Placer(const PlacingOptions& options, SampleSource& samples, PlacingObserver& observer,
         TimelineObserver* timeline_observer = nullptr);

  // Takes the next item of the trace; places the samples whose brackets have passed.
  void Take(const trace::Item& item);
  // Places what is left. Internal: a sample is neither placed nor in a remainder.
  absl::Status Finish();

  const PlacingCounts& counts() const { return counts_; }
  // Of the domains that have samples, in their order.
  std::vector<PlacingCheck> Checks() const { return checks_.Conclude(); }
  // By Context::waiting.
  const std::vector<WaitingSet>& waiting_sets() const { return run_queues_.sets(); }

 private:
  // Cycles in a context that the observer has not been told of yet.
  struct Traced {
    Context context;
    Cycles cycles = 0;
  };
  struct Vcpu {
    TimelineHistory history;
    HistoryQueue<ExitMark> exits;
    HistoryQueue<Tsc> stops;  // when it went offline
    Wakeup wakeup;
    ExitContents contents;         // of its last exit, where exits are told apart by that
    bool last_exit_known = false;  // exits.back() or one before it, with no loss since
    uint32_t last_reason = 0;
    Address last_rip = 0;
    Tsc nmi_matched_until;  // NMI exits before this have had their sample or will not
    // Up to now, for the weight of lost time: in any known state, and of it in each context.
    Cycles known = 0;
    Cycles lost_before = 0;  // Losses::LostTimeUntil when it became lost
    std::array<Cycles, 6> by_context{};
    VcpuRef ref;                 // of the next
    std::vector<Traced> traced;  // by a hash of the context
  };
  // Where a sample of some bracket and mode can have been; empty when nowhere that is known.
  struct Candidates {
    size_t ranks = 0;           // ranks.h; 1 where samples' order tells nothing, 0 of nowhere
    std::vector<Place> places;  // of each rank, one rank after another
    std::array<uint32_t, kMaxRanks> ends{};  // of places, by rank
    uint64_t first_list = 0;                 // PlacedSample::list of rank 0, on which others follow
    // In the order of time.
    std::vector<ClusterShare> clusters;
    TscRange when;
    Address address = 0;  // ExitCandidates: where the guest most likely was
    bool empty() const { return ranks == 0; }
    std::span<const Place> PlacesOf(size_t rank) const {
      const uint32_t begin = rank == 0 ? 0 : ends[rank - 1];
      return {places.data() + begin, ends[rank] - begin};
    }
    // The run of a sample that has about such a part of the others before it.
    uint64_t ClusterAt(double part) const;
  };
  // A stretch of the timeline where samples of a bracket and mode can have been.
  struct CandidateInterval {
    size_t place = 0;   // of the candidates'
    double length = 0;  // in cycles
  };
  // Of samples of one bracket, by what they logged: those with the same can have been at the same
  // exits.
  using ExitCandidates = absl::flat_hash_map<std::pair<Address, Mode>, Candidates>;

  bool WantsMarks() const override {
    return timeline_observer_ != nullptr && timeline_observer_->WantsMarks();
  }
  void OnSegment(const Segment& segment) override;
  void OnRunstateInterval(const RunstateInterval& interval) override;
  void OnExit(const ExitArc& arc) override;
  void OnMark(const Mark& mark) override;
  void OnState(const VcpuTrack& track, TimelineState before) override;

  Vcpu& VcpuAt(uint32_t index);
  // The timeline's track of the vCPU, or null when the trace has not named it.
  const VcpuTrack* Find(VcpuRef vcpu);
  // What the vCPU has been doing since its last completed interval, if that is known.
  std::optional<TimelineInterval> OpenInterval(const VcpuTrack& track) const;
  // The same, divided where others begin or cease to wait: visit(interval).
  template <typename Visitor>
  void ForEachOpen(const VcpuTrack& track, Visitor visit) const;
  // The context of what a vCPU does, with what the options ask to tell of an exit.
  Context ContextIn(const Vcpu& vcpu, SegmentKind kind, bool nested, uint32_t reason,
                    uint64_t exit) const;
  void AddInterval(uint32_t index, const TimelineInterval& interval);
  // What the vCPU spends in few contexts again and again is told in few sums.
  void AddTraced(Vcpu& vcpu, const TimelineInterval& interval, Cycles cycles);
  void NoteExit(const VcpuTrack& track);
  // Of items that are no records.
  void OnLossItem(const trace::Item& item);
  // A record that tells what woke the vCPU.
  void NoteWakeup(const trace::Record& record);
  // A record of the handler of the exit that is open.
  void NoteContents(const trace::Record& record);
  void ReadBatch();
  void PlaceBatch();
  void PlaceInstant(const recording::Sample& sample);
  void PlaceStopped(const recording::Sample& sample);
  void PlaceTimed(const recording::Sample& sample);
  void PlaceBrackets(Vcpu& vcpu, const VcpuTrack& track);
  // By sample of the batch: its NMI exit among the vCPU's exits, or null.
  std::vector<const ExitMark*> FindNmiExits(Vcpu& vcpu) const;
  // The exits whose entry the sample names, if there are any.
  Candidates FindExits(const Vcpu& vcpu, const recording::Sample& sample, TscRange bracket);
  // Of lost time, the part that counts for samples of the mode: what the vCPU spends so elsewhere.
  static double PartOfLost(const Vcpu& vcpu, Mode mode);
  // How much of the range, in which nothing is known of some vCPU, it may have run unseen: while
  // records were lost, or behind the end of a pCPU's trace.
  struct UnobservedTime {
    Cycles lost = 0;
    Cycles ended = 0;
  };
  UnobservedTime UnobservedTimeIn(TscRange range) const;
  // Of so many samples in the bracket, or of some (1).
  Candidates FindCandidates(const Vcpu& vcpu, const VcpuTrack& track, Mode mode, TscRange bracket,
                            size_t samples);
  // Of places with their lengths, those of each rank, by the intervals found.
  void WeighByRank(size_t samples, Candidates& found);
  bool OutsideTrace(TscRange bracket) const;
  // Places the sample in lost time where its vCPU has not been named up to there, so that only
  // there it can have run. Returns whether it has.
  bool PlaceUnknownVcpu(const recording::Sample& sample, const VcpuTrack* track);
  // When the vCPU was stopped, if the trace saw it stop within the bracket.
  static std::optional<Tsc> StopWithin(const Vcpu& vcpu, const VcpuTrack& track, TscRange bracket);
  UnplacedReason ReasonUnplaced(const Vcpu& vcpu, const VcpuTrack& track, TscRange bracket) const;
  void Accept(const recording::Sample& sample, VcpuRef vcpu, Address address, Placement placement,
              uint64_t cluster, std::span<const Place> places, TscRange when, uint64_t list = 0);
  // Ends the places of the next rank. Checks and numbers them; every sample that gets them then
  // weighs 1.
  void EndRank(Candidates& found);
  void Reject(const recording::Sample& sample, UnplacedReason why);
  void Forget();

  PlacingOptions options_;
  SampleSource* samples_;
  PlacingObserver* observer_;
  TimelineObserver* timeline_observer_;  // null: nobody
  Timeline timeline_;
  absl::Status fault_;
  absl::flat_hash_map<VcpuRef, const VcpuTrack*> tracks_;
  PlacingCounts counts_;
  CrossChecks checks_;
  RunQueues run_queues_;
  Losses losses_;
  std::array<bool, trace::kEventCount> of_handlers_{};  // events, where exits are told apart
  absl::flat_hash_set<std::pair<ExitKind, uint64_t>> subreasons_;  // that were met
  std::vector<Vcpu> vcpus_;                                        // by VcpuTrack::index
  std::vector<TimelineHistory> pcpus_;                             // by pCPU
  std::vector<recording::Sample> batch_;
  uint64_t lists_ = 0;                                  // of places, so far
  absl::flat_hash_map<Address, uint32_t> times_;        // FindExits: of each address
  std::vector<CandidateInterval> candidate_intervals_;  // FindCandidates: in the order of time
  std::vector<Place> unranked_;                         // WeighByRank: whatever the rank
  std::vector<double> weights_;                         // likewise: by place and rank
  const recording::Sample* next_ = nullptr;             // the source's
  Tsc trace_begin_;
  bool trace_begun_ = false;
  Tsc forgotten_;  // intervals that end at or before this are gone
  Tsc forget_at_;
};

// Gives every sample to the observer as kUntraced, where there is no trace to join it with.
PlacingCounts PlaceWithoutTrace(SampleSource& samples, PlacingObserver& observer);

}  // namespace xenoscope::correlate
