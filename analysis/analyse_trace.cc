#include "analysis/analyse_trace.h"

#include <algorithm>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <variant>

#include "analysis/describe.h"
#include "analysis/dispatcher.h"
#include "analysis/limits.h"
#include "analysis/record_pipeline.h"
#include "analysis/side_passes.h"
#include "analysis/trace_metadata.h"
#include "analysis/warm_up_filter.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/state_snapshot.h"
#include "trace/probe.h"

namespace xenoscope::analysis {

void TraceTotals::Append(const TraceTotals& later) {
  unknown_events += later.unknown_events;
  if (malformed == 0) first_malformed_offset = later.first_malformed_offset;
  malformed += later.malformed;
  padding += later.padding;
  loss_marks += later.loss_marks;
  lost_records += later.lost_records;
  damages += later.damages;
  damaged_bytes += later.damaged_bytes;
  last = std::max(last, later.last);
  for (const auto& [id, count] : later.unknown_by_id) {
    if (unknown_by_id.size() < kUnknownKept || unknown_by_id.contains(id)) {
      unknown_by_id[id] += count;
    }
  }
  for (const trace::Damage& damage : later.first_damages) {
    if (first_damages.size() < kDamagesKept) first_damages.push_back(damage);
  }
  faults.Append(later.faults);
}

namespace {

using trace::Item;
using trace::ItemKind;

// Counts an item that is not a known record.
void CountNonRecord(const Item& item, TraceTotals& totals) {
  switch (item.kind) {
    case ItemKind::kUnknownEvent:
      ++totals.unknown_events;
      if (totals.unknown_by_id.size() < TraceTotals::kUnknownKept ||
          totals.unknown_by_id.contains(item.record.id)) {
        ++totals.unknown_by_id[item.record.id];
      }
      break;
    case ItemKind::kMalformed:
      if (totals.malformed++ == 0) totals.first_malformed_offset = item.record.offset;
      break;
    case ItemKind::kWrap:
      ++totals.padding;
      break;
    case ItemKind::kLost:
      ++totals.loss_marks;
      totals.lost_records += item.record.payload.Word(0);
      break;
    case ItemKind::kDamaged:
      ++totals.damages;
      totals.damaged_bytes += item.damage.bytes;
      if (totals.first_damages.size() < TraceTotals::kDamagesKept) {
        totals.first_damages.push_back(item.damage);
      }
      break;
    case ItemKind::kRecord:
    case ItemKind::kLossBegin:
    case ItemKind::kPcpuBegin:
    case ItemKind::kPcpuEnd:
      break;
  }
}

absl::Status CheckBytes(const TraceTotals& totals, const std::string& name) {
  const uint64_t accounted = totals.header_bytes + totals.record_bytes + totals.damaged_bytes;
  if (accounted == totals.bytes) return absl::OkStatus();
  return InternalError("{}: {} bytes, but headers {} + records {} + damaged {} are {}", name,
                       totals.bytes, totals.header_bytes, totals.record_bytes, totals.damaged_bytes,
                       accounted);
}

// Finds the vendor, without which exits have no names, if the first records did not show it: a
// guest that ran only briefly may have been missed.
void CompleteVendor(const trace::TraceFile& file, TraceMetadata& metadata) {
  if (metadata.dialect.vendor_source != trace::DialectSource::kUnknown) return;
  if (metadata.volume.Records(trace::Event::kHvmVmexit) == 0) return;
  const trace::Dialect dialect = trace::FindVendor(file);
  metadata.dialect.vendor = dialect.vendor;
  metadata.dialect.vendor_source = dialect.vendor_source;
}

// What a partition is made with.
struct Made {
  const MakeAnalyses& analyses;
  trace::RecordOrder order;  // kGroups: the one that the analyses need
  size_t divide_over;        // the vCPUs among which budgets are divided; 0: all share them
  uint64_t window_bytes;     // of correlate::PcpuGroups
};

// A partition of the trace on one thread, with analyses of its own.
class Partition {
 public:
  Partition(const trace::TraceFile& file, const Made& made, correlate::VcpuIndex& numbers,
            std::optional<Tsc> stream_from = std::nullopt)
      : file_(file.bytes()),
        analyses_(made.analyses()),
        pipeline_(SubscribersOf(analyses_), &numbers, made.window_bytes),
        stream_(file.Stream(stream_from)),
        warm_up_begin_(stream_from.value_or(Tsc{0})) {
    if (made.order == trace::RecordOrder::kTime) pipeline_.UseOrderOfTime();
    for (const auto& analysis : analyses_) {
      const std::vector<EntryBudget*> budgets = analysis->Budgets();
      budgets_.insert(budgets_.end(), budgets.begin(), budgets.end());
    }
    if (made.divide_over == 0) return;
    for (EntryBudget* budget : budgets_) budget->DivideOver(made.divide_over);
  }

  // Takes the records before `begin`, which only change the state.
  void WarmUp(Tsc begin) {
    for (EntryBudget* budget : budgets_) budget->BeginLaterPart();
    pipeline_.StartWarmUp();
    WarmUpFilter filter(file_, pipeline_);
    pipeline_.Pass<false>(stream_, Tsc{begin.value - 1}, filter);
    filter.Flush();
    pipeline_.StartCounting();
    for (const auto& analysis : analyses_) analysis->StartCounting(pipeline_.timeline());
    state_at_begin_ = CurrentState(warm_up_begin_);
  }
  // Counts records up to `through`; may be called again.
  void Count(Tsc through) {
    pipeline_.Pass<true>(stream_, through, *this);
    totals_.last = pipeline_.timeline().now();
    totals_.faults = pipeline_.timeline().faults();
    for (const auto& analysis : analyses_) analysis->StopCounting(pipeline_.timeline());
  }

  // Takes a record of the stream.
  void TakeRecord(const trace::Record& record, const Dispatcher::EventRoute& route) {
    pipeline_.TakeRecord(record, route);
  }
  void TakeNonRecord(const Item& item) {
    CountNonRecord(item, totals_);
    pipeline_.TakeNonRecord(item);
  }

  // Returns whether this partition, which ends where `next` begins, has the state that `next` had
  // after its warm-up. Then `next` counted what this one would have counted, and this one is
  // complete.
  bool StateMatches(Partition& next) {
    return CurrentState(next.warm_up_begin_) == next.state_at_begin_ &&
           pipeline_.timeline().MergeIdleVcpus(next.pipeline_.timeline(), next.warm_up_begin_);
  }

  // Whether a budget answers with yes.
  [[nodiscard]] bool AnyBudget(bool (EntryBudget::*asks)() const) const {
    return std::ranges::any_of(budgets_,
                               [asks](const EntryBudget* budget) { return (budget->*asks)(); });
  }

  // Ends what is open; for the last partition.
  void Finish() {
    pipeline_.Finish();
    for (const auto& analysis : analyses_) analysis->Finish(totals_.last);
  }

  const TraceTotals& totals() const { return totals_; }
  trace::Volume TakenVolume() const { return stream_.TakenVolume(); }
  const std::vector<std::unique_ptr<Analysis>>& analyses() const { return analyses_; }
  const correlate::Timeline& timeline() const { return pipeline_.timeline(); }

 private:
  StateSnapshot CurrentState(Tsc since) const {
    StateSnapshot state;
    stream_.SaveState(state);
    pipeline_.timeline().SaveState(state, since);
    for (const auto& analysis : analyses_) analysis->SaveState(state);
    return state;
  }

  Bytes file_;
  std::vector<std::unique_ptr<Analysis>> analyses_;
  std::vector<EntryBudget*> budgets_;  // those of all analyses
  RecordPipeline pipeline_;
  trace::OrderedStream stream_;
  Tsc warm_up_begin_;
  StateSnapshot state_at_begin_;
  TraceTotals totals_;
};

// Returns a partition that begins in the middle and is ready to count.
std::unique_ptr<Partition> MakeWarmedUpPartition(const trace::TraceFile& file, const Made& made,
                                                 correlate::VcpuIndex& numbers,
                                                 const PartitionBegin& begin) {
  for (const std::optional<Tsc>& from : {begin.warm_up, begin.longer_warm_up}) {
    if (!from) break;
    auto partition = std::make_unique<Partition>(file, made, numbers, from);
    partition->WarmUp(begin.at);
    std::set<VcpuRef> met;
    for (const auto& vcpu : partition->timeline().vcpus()) met.insert(vcpu->ref);
    const auto met_or_idle = [&met](VcpuRef vcpu) { return IsIdle(vcpu) || met.contains(vcpu); };
    if (std::ranges::all_of(numbers.All(), met_or_idle)) return partition;
    // Another thread has met a vCPU that this one has not: the warm-up was probably too short.
  }
  auto partition = std::make_unique<Partition>(file, made, numbers);
  partition->WarmUp(begin.at);
  return partition;
}

using Partitions = std::vector<std::unique_ptr<Partition>>;

// AnalysisResult::kept.
struct Kept {
  correlate::VcpuIndex numbers;  // of all partitions' vCPUs
  Partitions partitions;
};

// Returns the instant through which partition `i` counts.
Tsc LastInstantOf(size_t i, const std::vector<PartitionBegin>& begins) {
  return i < begins.size() ? Tsc{begins[i].at.value - 1} : trace::OrderedStream::kEnd;
}

// Whether clocks may differ: what the totals are of contradicts itself.
bool ClocksMayDiffer(const trace::TraceFile& file, const TraceTotals& totals) {
  return totals.faults.runstate_mismatches > 0 && file.index().pcpus.size() > 1;
}

// Whether the TSCs of guests are to be searched for, and can be found in records of this volume.
bool GuestClocksAreWanted(const TraceHints& hints, const trace::Volume& volume) {
  return hints.guest_clocks && volume.Records(trace::Event::kGuest) >= correlate::kLeastClockEvents;
}

// Counts the first partition, up to the time `through`. Looks three times whether there is a reason
// for other passes, which then go on at the same time.
void CountFirst(const trace::TraceFile& file, const TraceHints& hints, Tsc through,
                Partition& first, SidePasses& side) {
  const Tsc begin = file.Stream().next_tsc();
  for (const uint64_t part : {64, 8, 2}) {
    if (through <= begin) break;
    first.Count(begin + (through - begin) / part);
    const correlate::TimelineFaults& faults = first.totals().faults;
    if (ClocksMayDiffer(file, first.totals())) side.BeginSkews(faults.mismatches);
    if (GuestClocksAreWanted(hints, first.TakenVolume())) side.BeginGuestClocks();
  }
  first.Count(through);
}

// Counts all partitions, each on a thread of its own and the first one on this thread, which also
// finds `metadata`. If there are several, other passes may begin.
Partitions CountPartitions(const trace::TraceFile& file, const TraceHints& hints, const Made& made,
                           const std::vector<PartitionBegin>& begins, correlate::VcpuIndex& numbers,
                           TraceMetadata& metadata, SidePasses& side) {
  Partitions partitions(begins.size() + 1);
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < partitions.size(); ++i) {
    threads.push_back(StartThread([&, i] {
      partitions[i] = MakeWarmedUpPartition(file, made, numbers, begins[i - 1]);
      partitions[i]->Count(LastInstantOf(i, begins));
    }));
  }
  partitions[0] = std::make_unique<Partition>(file, made, numbers);
  metadata = ProbeTraceMetadata(file, hints);
  if (begins.empty()) {
    partitions[0]->Count(trace::OrderedStream::kEnd);
  } else {
    CountFirst(file, hints, LastInstantOf(0, begins), *partitions[0], side);
  }
  for (std::jthread& thread : threads) thread.join();
  return partitions;
}

// Returns the partitions that make up the result. One that began with another state than the one
// before ended with does not count: the one before goes on through it, and `repeated` grows.
std::vector<Partition*> ValidPartitions(const Partitions& partitions,
                                        const std::vector<PartitionBegin>& begins,
                                        uint32_t& repeated) {
  std::vector<Partition*> valid = {partitions[0].get()};
  for (size_t i = 1; i < partitions.size(); ++i) {
    if (valid.back()->StateMatches(*partitions[i])) {
      valid.push_back(partitions[i].get());
    } else {
      valid.back()->Count(LastInstantOf(i, begins));
      ++repeated;
    }
  }
  return valid;
}

// Merges the figures of all partitions into the last one, which it finishes. Returns the totals of
// their items; sets `volume` to the volume of their records.
TraceTotals MergePartitions(const std::vector<Partition*>& valid, trace::Volume& volume) {
  TraceTotals totals = valid[0]->totals();
  volume = valid[0]->TakenVolume();
  if (valid.size() > 1) {
    ForEachInParallel(valid[0]->analyses().size(), 1, [&valid](size_t number) {
      for (size_t i = 1; i < valid.size(); ++i) {
        valid[i]->analyses()[number]->MergeFrom(*valid[i - 1]->analyses()[number]);
      }
    });
  }
  for (size_t i = 1; i < valid.size(); ++i) {
    totals.Append(valid[i]->totals());
    volume.Add(valid[i]->TakenVolume());
  }
  valid.back()->Finish();
  return totals;
}

// Adds to the totals what the file, the volume of its records and other passes say.
void CompleteTotals(const trace::TraceFile& file, const TraceHints& hints,
                    const trace::Volume& volume, SidePasses& side, TraceTotals& totals) {
  totals.bytes = file.bytes().size();
  totals.header_bytes = file.index().header_bytes;
  totals.pcpus = file.index().pcpus.size();
  if (!file.index().pcpus.empty()) totals.first = file.Stream().next_tsc();
  const trace::RecordCount all = volume.Total();
  totals.records = all.records;
  totals.record_bytes = all.bytes;
  if (ClocksMayDiffer(file, totals)) {
    totals.skews = side.Skews({totals.first, totals.last}, totals.faults.mismatches);
  }
  if (GuestClocksAreWanted(hints, volume)) totals.guest_clocks = side.GuestClocks();
}

// Whether the figures depend on the order of different pCPUs' records.
bool DependsOnOrder(const Partition& partition) {
  return std::ranges::any_of(partition.analyses(), [](const std::unique_ptr<Analysis>& analysis) {
    return analysis->DependsOnOrder();
  });
}

// How a trace is to be analysed again.
struct Again {
  trace::RecordOrder order = trace::RecordOrder::kGroups;
  size_t divide_over = 0;
  bool in_parts = true;
};

// Returns `Again` if the result depends on the order in which the records came, or on where the
// partitions begin: never in the order of time without partitions.
absl::StatusOr<std::variant<AnalysisResult, Again>> Analyse(
    const trace::TraceFile& file, const TraceHints& hints, const Made& made,
    const std::vector<PartitionBegin>& begins) {
  AnalysisResult result;
  const auto kept = std::make_shared<Kept>();
  SidePasses side(file);
  kept->partitions =
      CountPartitions(file, hints, made, begins, kept->numbers, result.metadata, side);
  const Partitions& partitions = kept->partitions;
  const std::vector<Partition*> valid =
      ValidPartitions(partitions, begins, result.partitions_repeated);
  const auto any = [&valid](const auto& asks) {
    return std::ranges::any_of(valid, [&asks](const Partition* each) { return asks(*each); });
  };
  bool refused = any([](const Partition& each) { return each.AnyBudget(&EntryBudget::refused); });
  const bool cut = any([](const Partition& each) { return each.AnyBudget(&EntryBudget::cut); });
  bool depends = any(DependsOnOrder);
  TraceTotals& totals = result.trace;
  totals = MergePartitions(valid, result.metadata.volume);
  refused = refused || valid.back()->AnyBudget(&EntryBudget::refused);
  depends = depends || DependsOnOrder(*valid.back()) || totals.faults.vcpus_over_limit > 0;
  if (refused) return Again{.divide_over = kept->numbers.All().size()};
  const bool one_order =
      begins.empty() && (made.order == trace::RecordOrder::kTime || file.index().pcpus.size() < 2);
  if (depends && !one_order) return Again{trace::RecordOrder::kTime, made.divide_over, false};
  if (cut) return Again{made.order, made.divide_over, false};
  CompleteTotals(file, hints, result.metadata.volume, side, totals);
  std::set<VcpuRef> vcpus;
  for (const Partition* partition : valid) {
    for (const auto& vcpu : partition->timeline().vcpus()) vcpus.insert(vcpu->ref);
  }
  XENOSCOPE_RETURN_IF_ERROR(CheckBytes(totals, file.name()));
  XENOSCOPE_RETURN_IF_ERROR(
      CheckLimits(file, totals.faults, vcpus.size(), {totals.first, totals.last}));

  result.metadata.range = {totals.first, totals.last};
  CompleteVendor(file, result.metadata);
  result.document = DescribeAll(valid.back()->analyses(), vcpus, result.metadata,
                                begins.empty() ? DescribeOn::kOneThread : DescribeOn::kAllThreads);
  result.kept = kept;
  return result;
}

}  // namespace

absl::StatusOr<AnalysisResult> AnalysePartitions(const trace::TraceFile& file,
                                                 const TraceHints& hints, const MakeAnalyses& make,
                                                 const std::vector<PartitionBegin>& begins,
                                                 uint64_t window_bytes) {
  XENOSCOPE_ASSIGN_OR_RETURN(
      auto result,
      Analyse(file, hints, {make, trace::RecordOrder::kGroups, 0, window_bytes}, begins));
  while (const Again* again = std::get_if<Again>(&result)) {
    XENOSCOPE_ASSIGN_OR_RETURN(
        result, Analyse(file, hints, {make, again->order, again->divide_over, window_bytes},
                        again->in_parts ? begins : std::vector<PartitionBegin>{}));
  }
  return std::get<AnalysisResult>(std::move(result));
}

absl::StatusOr<AnalysisResult> AnalyseTrace(const trace::TraceFile& file, const TraceHints& hints,
                                            const MakeAnalyses& make, unsigned threads) {
  return AnalysePartitions(file, hints, make, PartitionTrace(file, threads));
}

}  // namespace xenoscope::analysis
