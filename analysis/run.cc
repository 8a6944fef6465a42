#include "analysis/run.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <thread>
#include <utility>

#include "analysis/facts.h"
#include "analysis/follower.h"
#include "analysis/lane.h"
#include "analysis/limits.h"
#include "base/error.h"
#include "base/remembered.h"
#include "trace/probe.h"

namespace xenoscope::analysis {

void TraceFigures::Append(const TraceFigures& later) {
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

// Counts what is not a known record.
void CountRare(const Item& item, TraceFigures& figures) {
  switch (item.kind) {
    case ItemKind::kUnknownEvent:
      ++figures.unknown_events;
      if (figures.unknown_by_id.size() < TraceFigures::kUnknownKept ||
          figures.unknown_by_id.contains(item.record.id)) {
        ++figures.unknown_by_id[item.record.id];
      }
      break;
    case ItemKind::kMalformed:
      if (figures.malformed++ == 0) figures.first_malformed_offset = item.record.offset;
      break;
    case ItemKind::kWrap:
      ++figures.padding;
      break;
    case ItemKind::kLost:
      ++figures.loss_marks;
      figures.lost_records += item.record.payload.Word(0);
      break;
    case ItemKind::kDamaged:
      ++figures.damages;
      figures.damaged_bytes += item.damage.bytes;
      if (figures.first_damages.size() < TraceFigures::kDamagesKept) {
        figures.first_damages.push_back(item.damage);
      }
      break;
    case ItemKind::kRecord:
    case ItemKind::kLossBegin:
    case ItemKind::kPcpuBegin:
    case ItemKind::kPcpuEnd:
      break;
  }
}

absl::Status CheckBytes(const TraceFigures& figures, const std::string& name) {
  const uint64_t accounted = figures.header_bytes + figures.record_bytes + figures.damaged_bytes;
  if (accounted == figures.bytes) return absl::OkStatus();
  return InternalError("{}: {} bytes, but headers {} + records {} + damaged {} are {}", name,
                       figures.bytes, figures.header_bytes, figures.record_bytes,
                       figures.damaged_bytes, accounted);
}

Document Describe(const std::vector<std::unique_ptr<Analysis>>& analyses,
                  const std::set<VcpuRef>& met, const Facts& facts) {
  Document document;
  for (const auto& analysis : analyses) analysis->DescribeTrace(facts, document.trace);
  std::map<DomainId, std::set<VcpuRef>> domains;
  std::set<DomainId> named;
  for (const auto& analysis : analyses) analysis->AddDomains(named);
  for (const DomainId domain : named) domains[domain];
  for (const VcpuRef vcpu : met) domains[vcpu.domain].insert(vcpu);
  for (const auto& [id, vcpus] : domains) {
    DomainSection& domain = document.domains.emplace_back(DomainSection{id, {}, {}});
    for (const auto& analysis : analyses) analysis->DescribeDomain(id, facts, domain.section);
    for (const VcpuRef ref : vcpus) {
      VcpuSection& vcpu = domain.vcpus.emplace_back(VcpuSection{ref.vcpu, {}});
      for (const auto& analysis : analyses) analysis->DescribeVcpu(ref, facts, vcpu.section);
    }
  }
  return document;
}

// Makes sure of the vendor, without which exits have no names: a guest that ran only for a short
// time may have escaped the look at the beginning.
void FindVendor(const trace::TraceFile& file, Facts& facts) {
  if (facts.dialect.vendor_source != trace::DialectSource::kUnknown) return;
  if (facts.volume.Records(trace::Event::kHvmVmexit) == 0) return;
  const trace::Dialect dialect = trace::ProbeTrace(file, 2 * file.bytes().size()).dialect;
  facts.dialect.vendor = dialect.vendor;
  facts.dialect.vendor_source = dialect.vendor_source;
}

// One thread's slice of the trace, with analyses of its own.
class Slice {
 public:
  Slice(const trace::TraceFile& file, const MakeAnalyses& make, correlate::VcpuNumbers& numbers,
        std::optional<Tsc> stream_from = std::nullopt)
      : file_(file.bytes()),
        analyses_(make()),
        lane_(SubscribersOf(analyses_), &numbers),
        stream_(file.Stream(stream_from)),
        followed_from_(stream_from.value_or(Tsc{0})) {}

  // What comes before `begin` only changes what is known.
  void WarmUp(Tsc begin) {
    lane_.StartFollowing();
    Follower follower(file_, lane_);
    followed_ = lane_.WantedEvents();
    stream_.ForEach<false>(Tsc{begin.value - 1}, followed_, follower);
    follower.GiveAll();
    lane_.StartCounting();
    for (const auto& analysis : analyses_) analysis->StartCounting(lane_.timeline());
    known_at_begin_ = Known(followed_from_);
  }
  // Counts up to `through`; may be called again.
  void Count(Tsc through) {
    counted_ = lane_.WantedEvents();
    stream_.ForEach<true>(through, counted_, *this);
    figures_.last = lane_.timeline().now();
    figures_.faults = lane_.timeline().faults();
    for (const auto& analysis : analyses_) analysis->StopCounting(lane_.timeline());
  }

  // What the stream gives while it counts.
  void TakeRecord(const trace::Record& record, const void* purpose) {
    lane_.TakeRecord(record, purpose);
  }
  void TakeRare(const Item& item) {
    CountRare(item, figures_);
    lane_.TakeRare(item);
  }

  // Whether this one, which ends where `next` begins, knows what `next` learnt by its warm-up: then
  // `next` counted what this one would, and this one is complete.
  bool HandOver(Slice& next) {
    return Known(next.followed_from_) == next.known_at_begin_ &&
           lane_.timeline().HandOverIdle(next.lane_.timeline(), next.followed_from_);
  }

  // Of the last slice: ends what is open.
  void Finish() {
    lane_.Finish();
    for (const auto& analysis : analyses_) analysis->Finish(figures_.last);
  }

  void Absorb(Slice& earlier) {
    for (size_t i = 0; i < analyses_.size(); ++i) analyses_[i]->Absorb(*earlier.analyses_[i]);
  }

  const TraceFigures& figures() const { return figures_; }
  trace::Volume TakenVolume() const { return stream_.TakenVolume(); }
  const std::vector<std::unique_ptr<Analysis>>& analyses() const { return analyses_; }
  const correlate::Timeline& timeline() const { return lane_.timeline(); }

 private:
  Remembered Known(Tsc since) const {
    Remembered known;
    stream_.Remember(known);
    lane_.timeline().Remember(known, since);
    for (const auto& analysis : analyses_) analysis->Remember(known);
    return known;
  }

  Bytes file_;
  std::vector<std::unique_ptr<Analysis>> analyses_;
  Lane lane_;
  trace::OrderedStream stream_;
  Tsc followed_from_;
  trace::Wanted followed_{};
  trace::Wanted counted_{};
  Remembered known_at_begin_;
  TraceFigures figures_;
};

// A slice that begins in the middle, ready to count.
std::unique_ptr<Slice> WarmedUp(const trace::TraceFile& file, const MakeAnalyses& make,
                                correlate::VcpuNumbers& numbers, const SliceBegin& begin) {
  for (const std::optional<Tsc>& from : {begin.warm_up, begin.longer_warm_up}) {
    if (!from) break;
    auto slice = std::make_unique<Slice>(file, make, numbers, from);
    slice->WarmUp(begin.at);
    std::set<VcpuRef> met;
    for (const auto& vcpu : slice->timeline().vcpus()) met.insert(vcpu->ref);
    const auto met_or_idle = [&met](VcpuRef vcpu) { return IsIdle(vcpu) || met.contains(vcpu); };
    if (std::ranges::all_of(numbers.All(), met_or_idle)) return slice;
    // Another thread has met a vCPU that this one has not: most probably the warm-up was too short.
  }
  auto slice = std::make_unique<Slice>(file, make, numbers);
  slice->WarmUp(begin.at);
  return slice;
}

}  // namespace

absl::StatusOr<Result> RunSlices(const trace::TraceFile& file, const Known& known,
                                 const MakeAnalyses& make, const std::vector<SliceBegin>& begins) {
  Result result;
  correlate::VcpuNumbers numbers;
  const auto through = [&](size_t i) {
    return i < begins.size() ? Tsc{begins[i].at.value - 1} : trace::OrderedStream::kEnd;
  };
  std::vector<std::unique_ptr<Slice>> slices(begins.size() + 1);
  std::vector<std::thread> threads;
  for (size_t i = 1; i < slices.size(); ++i) {
    threads.emplace_back([&, i] {
      slices[i] = WarmedUp(file, make, numbers, begins[i - 1]);
      slices[i]->Count(through(i));
    });
  }
  slices[0] = std::make_unique<Slice>(file, make, numbers);
  result.facts = EstablishFacts(file, known);
  slices[0]->Count(through(0));
  for (std::thread& thread : threads) thread.join();

  // A slice that began with something else than what the one before ended with does not count: the
  // one before goes on through its part.
  std::vector<Slice*> valid = {slices[0].get()};
  for (size_t i = 1; i < slices.size(); ++i) {
    if (valid.back()->HandOver(*slices[i])) {
      valid.push_back(slices[i].get());
    } else {
      valid.back()->Count(through(i));
      ++result.slices_repeated;
    }
  }
  Slice& last = *valid.back();
  TraceFigures& figures = result.trace;
  figures = valid[0]->figures();
  trace::Volume& volume = result.facts.volume;
  volume = valid[0]->TakenVolume();
  for (size_t i = 1; i < valid.size(); ++i) {
    valid[i]->Absorb(*valid[i - 1]);
    figures.Append(valid[i]->figures());
    volume.Add(valid[i]->TakenVolume());
  }
  last.Finish();
  figures.bytes = file.bytes().size();
  figures.header_bytes = file.index().header_bytes;
  figures.pcpus = file.index().pcpus.size();
  if (!file.index().pcpus.empty()) figures.first = file.Stream().next_tsc();
  const trace::RecordCount all = volume.Total();
  figures.records = all.records;
  figures.record_bytes = all.bytes;
  if (figures.faults.runstate_mismatches > 0 && figures.pcpus > 1) {
    figures.skews = correlate::CompareClocks(file, {figures.first, figures.last});
  }
  std::set<VcpuRef> vcpus;
  for (const Slice* slice : valid) {
    for (const auto& vcpu : slice->timeline().vcpus()) vcpus.insert(vcpu->ref);
  }
  XENOSCOPE_RETURN_IF_ERROR(CheckBytes(figures, file.name()));
  XENOSCOPE_RETURN_IF_ERROR(
      CheckLimits(file, figures.faults, vcpus.size(), {figures.first, figures.last}));

  result.facts.range = {figures.first, figures.last};
  FindVendor(file, result.facts);
  result.document = Describe(last.analyses(), vcpus, result.facts);
  return result;
}

absl::StatusOr<Result> Run(const trace::TraceFile& file, const Known& known,
                           const MakeAnalyses& make, unsigned threads) {
  return RunSlices(file, known, make, DivideInSlices(file, threads));
}

}  // namespace xenoscope::analysis
