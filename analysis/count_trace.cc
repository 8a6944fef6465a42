#include "analysis/count_trace.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "analysis/dispatcher.h"
#include "analysis/partition_schedule.h"
#include "analysis/record_pipeline.h"
#include "analysis/warm_up_filter.h"
#include "base/parallel.h"
#include "base/state_snapshot.h"
#include "correlate/timeline.h"
#include "trace/ordered_stream.h"

namespace xenoscope::analysis {
namespace {

// A partition of the trace on one thread, with analyses of its own. As it is local, compilers
// inline the loop over its records, which then takes a tenth less time.
class Partition {
 public:
  Partition(const trace::TraceFile& file, const CountingOptions& options,
            correlate::VcpuIndex& numbers, std::optional<Tsc> from = std::nullopt)
      : file_(file.bytes()),
        analyses_(options.make()),
        pipeline_(SubscribersOf(analyses_), &numbers, options.window_bytes),
        stream_(file.Stream(from)),
        warm_up_begin_(from.value_or(Tsc{0})) {
    pipeline_.Require(options.order);
    for (const auto& analysis : analyses_) {
      const std::vector<EntryBudget*> budgets = analysis->Budgets();
      budgets_.insert(budgets_.end(), budgets.begin(), budgets.end());
    }
    if (options.divide_over == 0) return;
    for (EntryBudget* budget : budgets_) budget->DivideOver(options.divide_over);
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
  void TakeNonRecord(const trace::Item& item) {
    totals_.CountNonRecord(item);
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

  // Whether the figures depend on the order of different pCPUs' records.
  [[nodiscard]] bool DependsOnOrder() const {
    return std::ranges::any_of(analyses_,
                               [](const auto& analysis) { return analysis->DependsOnOrder(); });
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

// Returns the instant through which a step counts, and a partition that ends with it.
Tsc LastInstantOf(size_t step, const std::vector<PartitionBegin>& begins) {
  return step < begins.size() ? Tsc{begins[step].at.value - 1} : trace::OrderedStream::kEnd;
}

// Whether the partition has met all vCPUs that any other has met, but idle ones.
bool HasMetAll(const Partition& partition, const correlate::VcpuIndex& numbers) {
  std::set<VcpuRef> met;
  for (const auto& vcpu : partition.timeline().vcpus()) met.insert(vcpu->ref);
  return std::ranges::all_of(numbers.All(),
                             [&met](VcpuRef vcpu) { return IsIdle(vcpu) || met.contains(vcpu); });
}

// By first step; null where none begins.
using Partitions = std::vector<std::unique_ptr<Partition>>;

// CountedTrace::kept.
struct Kept {
  correlate::VcpuIndex numbers;  // of all partitions' vCPUs
  Partitions partitions;
};

// Counts all partitions on several threads.
class Counting {
 public:
  Counting(const trace::TraceFile& file, const CountingOptions& options,
           const TraceDivision& division, const BesidesCounting& besides,
           correlate::VcpuIndex& numbers)
      : file_(file),
        options_(options),
        division_(division),
        besides_(besides),
        numbers_(numbers),
        schedule_(division.begins.size() + 1, division.starts),
        partitions_(division.begins.size() + 1) {}

  Partitions Run() {
    std::vector<std::jthread> threads;
    for (const size_t start : std::span(division_.starts).subspan(1)) {
      threads.push_back(StartThread([this, start] {
        BeginAt(start);
        CountSteps(start);
        TakeOver();
      }));
    }
    partitions_[0] = std::make_unique<Partition>(file_, options_, numbers_);
    besides_.first();
    CountSteps(0);
    TakeOver();
    for (std::jthread& thread : threads) thread.join();
    return std::move(partitions_);
  }

 private:
  // Makes a partition that is ready to count from this step on.
  void BeginAt(size_t step) {
    const PartitionBegin& begin = division_.begins[step - 1];
    for (const std::optional<Tsc>& from : {begin.warm_up, begin.longer_warm_up}) {
      if (!from) break;
      WarmUp(step, from);
      if (HasMetAll(*partitions_[step], numbers_)) return;
      // The warm-up was probably too short.
    }
    WarmUp(step, std::nullopt);
  }
  void WarmUp(size_t step, std::optional<Tsc> from) {
    partitions_[step] = std::make_unique<Partition>(file_, options_, numbers_, from);
    partitions_[step]->WarmUp(division_.begins[step - 1].at);
  }
  // Counts the steps of a partition.
  void CountSteps(size_t number) {
    while (const std::optional<size_t> step = schedule_.TakeStep(number)) {
      partitions_[number]->Count(LastInstantOf(*step, division_.begins));
      const bool last = *step == division_.begins.size();
      if (number == 0 && !last && std::has_single_bit(*step + 1)) {
        besides_.after_some_steps(partitions_[0]->totals(), partitions_[0]->TakenVolume());
      }
    }
  }
  // Counts what other threads have not begun. A vCPU that one of them has met may be younger than
  // that, so that there is no second warm-up.
  void TakeOver() {
    while (const std::optional<size_t> step = schedule_.Split()) {
      WarmUp(*step, division_.begins[*step - 1].warm_up);
      CountSteps(*step);
    }
  }

  const trace::TraceFile& file_;
  const CountingOptions& options_;
  const TraceDivision& division_;
  const BesidesCounting& besides_;
  correlate::VcpuIndex& numbers_;
  PartitionSchedule schedule_;
  Partitions partitions_;
};

// Returns the partitions that make up the result, in order. One that began with another state than
// the one before ended with does not count: the one before goes on through it, and `repeated`
// grows.
std::vector<Partition*> ValidPartitions(const Partitions& partitions, const TraceDivision& division,
                                        uint32_t& repeated) {
  std::vector<Partition*> valid = {partitions[0].get()};
  for (size_t i = 1; i < partitions.size(); ++i) {
    if (partitions[i] == nullptr) continue;
    if (valid.back()->StateMatches(*partitions[i])) {
      valid.push_back(partitions[i].get());
      continue;
    }
    size_t last = i;
    while (last + 1 < partitions.size() && partitions[last + 1] == nullptr) ++last;
    valid.back()->Count(LastInstantOf(last, division.begins));
    ++repeated;
  }
  return valid;
}

// Merges the figures of all partitions into the last one, which it finishes.
void MergePartitions(const std::vector<Partition*>& valid, CountedTrace& counted) {
  counted.totals = valid[0]->totals();
  counted.volume = valid[0]->TakenVolume();
  if (valid.size() > 1) {
    ForEachInParallel(valid[0]->analyses().size(), 1, [&valid](size_t number) {
      for (size_t i = 1; i < valid.size(); ++i) {
        valid[i]->analyses()[number]->MergeFrom(*valid[i - 1]->analyses()[number]);
      }
    });
  }
  for (size_t i = 1; i < valid.size(); ++i) {
    counted.totals.Append(valid[i]->totals());
    counted.volume.Add(valid[i]->TakenVolume());
  }
  valid.back()->Finish();
  counted.analyses = &valid.back()->analyses();
}

}  // namespace

CountedTrace CountTrace(const trace::TraceFile& file, const CountingOptions& options,
                        const TraceDivision& division, const BesidesCounting& besides) {
  CountedTrace counted;
  const auto kept = std::make_shared<Kept>();
  kept->partitions = Counting(file, options, division, besides, kept->numbers).Run();
  const std::vector<Partition*> valid =
      ValidPartitions(kept->partitions, division, counted.partitions_repeated);
  const auto note_limits = [&counted](const Partition& partition) {
    counted.refused |= partition.AnyBudget(&EntryBudget::refused);
    counted.depends_on_order |= partition.DependsOnOrder();
  };
  for (const Partition* partition : valid) {
    note_limits(*partition);
    counted.cut |= partition->AnyBudget(&EntryBudget::cut);
    for (const auto& vcpu : partition->timeline().vcpus()) counted.vcpus.insert(vcpu->ref);
  }
  MergePartitions(valid, counted);
  note_limits(*valid.back());  // all of it now
  counted.met = kept->numbers.All().size();
  counted.kept = kept;
  return counted;
}

}  // namespace xenoscope::analysis
