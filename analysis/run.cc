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
#include "analysis/slices.h"
#include "base/error.h"
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
                  const correlate::Timeline& timeline, const Facts& facts) {
  Document document;
  for (const auto& analysis : analyses) analysis->DescribeTrace(facts, document.trace);
  std::map<DomainId, std::set<VcpuRef>> domains;
  std::set<DomainId> named;
  for (const auto& analysis : analyses) analysis->AddDomains(named);
  for (const DomainId domain : named) domains[domain];
  for (const auto& vcpu : timeline.vcpus()) domains[vcpu->ref.domain].insert(vcpu->ref);
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
  // Counts from `begin`, or from the beginning, up to `through`.
  Slice(const trace::TraceFile& file, const MakeAnalyses& make, std::optional<Tsc> begin,
        Tsc through)
      : file_(file.bytes()),
        analyses_(make()),
        lane_(SubscribersOf(analyses_)),
        stream_(file.Stream()),
        begin_(begin),
        through_(through) {}

  void Run() {
    if (begin_) FollowUpTo(*begin_);
    counted_ = lane_.WantedEvents();
    stream_.ForEach<true>(through_, counted_, *this);
    figures_.last = lane_.timeline().now();
    figures_.faults = lane_.timeline().faults();
  }

  // What the stream gives while it counts.
  void TakeRecord(const trace::Record& record, const void* purpose) {
    lane_.TakeRecord(record, purpose);
  }
  void TakeRare(const Item& item) {
    CountRare(item, figures_);
    lane_.TakeRare(item);
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
  void FollowUpTo(Tsc begin) {
    lane_.StartFollowing();
    Follower follower(file_, lane_);
    followed_ = lane_.WantedEvents();
    stream_.ForEach<false>(Tsc{begin.value - 1}, followed_, follower);
    follower.GiveAll();
    lane_.StartCounting();
    for (const auto& analysis : analyses_) analysis->StartCounting(lane_.timeline());
  }

  Bytes file_;
  std::vector<std::unique_ptr<Analysis>> analyses_;
  Lane lane_;
  trace::OrderedStream stream_;
  trace::Wanted followed_{};
  trace::Wanted counted_{};
  std::optional<Tsc> begin_;
  Tsc through_;
  TraceFigures figures_;
};

}  // namespace

absl::StatusOr<Result> RunSlices(const trace::TraceFile& file, const Known& known,
                                 const MakeAnalyses& make, const std::vector<Tsc>& begins) {
  Result result;
  std::vector<std::unique_ptr<Slice>> slices;
  for (size_t i = 0; i <= begins.size(); ++i) {
    const std::optional<Tsc> begin = i == 0 ? std::nullopt : std::optional(begins[i - 1]);
    const Tsc through = i < begins.size() ? Tsc{begins[i].value - 1} : trace::OrderedStream::kEnd;
    slices.push_back(std::make_unique<Slice>(file, make, begin, through));
  }
  std::vector<std::thread> threads;
  for (size_t i = 1; i < slices.size(); ++i) threads.emplace_back([&, i] { slices[i]->Run(); });
  result.facts = EstablishFacts(file, known);
  slices[0]->Run();
  for (std::thread& thread : threads) thread.join();

  TraceFigures& figures = result.trace;
  figures = slices[0]->figures();
  trace::Volume& volume = result.facts.volume;
  volume = slices[0]->TakenVolume();
  for (size_t i = 1; i < slices.size(); ++i) {
    slices[i]->Absorb(*slices[i - 1]);
    figures.Append(slices[i]->figures());
    volume.Add(slices[i]->TakenVolume());
  }
  slices.back()->Finish();
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
  XENOSCOPE_RETURN_IF_ERROR(CheckBytes(figures, file.name()));
  XENOSCOPE_RETURN_IF_ERROR(CheckLimits(file, figures.faults,
                                        slices.back()->timeline().vcpus().size(),
                                        {figures.first, figures.last}));

  result.facts.range = {figures.first, figures.last};
  FindVendor(file, result.facts);
  result.document = Describe(slices.back()->analyses(), slices.back()->timeline(), result.facts);
  return result;
}

absl::StatusOr<Result> Run(const trace::TraceFile& file, const Known& known,
                           const MakeAnalyses& make, unsigned threads) {
  return RunSlices(file, known, make, SliceTimes(file, threads));
}

}  // namespace xenoscope::analysis
