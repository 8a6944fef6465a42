#include "analysis/run.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <thread>
#include <utility>

#include "analysis/dispatcher.h"
#include "analysis/evidence.h"
#include "analysis/handover.h"
#include "analysis/lane.h"
#include "analysis/limits.h"
#include "base/error.h"

namespace xenoscope::analysis {

Dispatcher::Dispatcher(const std::vector<Analysis*>& analyses) {
  for (Analysis* analysis : analyses) {
    Subscriptions wanted;
    analysis->Subscribe(wanted);
    for (const trace::Event event : wanted.events_) {
      by_event_[static_cast<size_t>(event)].push_back(analysis);
    }
    if (wanted.runs_) runs_.push_back(analysis);
    if (wanted.exits_) exits_.push_back(analysis);
    if (wanted.states_) states_.push_back(analysis);
    if (wanted.losses_) losses_.push_back(analysis);
  }
  for (auto& called : by_event_) called.push_back(nullptr);
}

namespace {

using trace::Item;
using trace::ItemKind;

// Counts what is not a known record.
void CountRare(const Item& item, TraceFigures& figures, Volume& volume) {
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
      return;
    case ItemKind::kRecord:
    case ItemKind::kLossBegin:
    case ItemKind::kPcpuBegin:
    case ItemKind::kPcpuEnd:
      return;
  }
  volume.AddRare(item.kind, item.record);
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

// What one pass over the stream finds of the trace itself.
struct Pass {
  TraceFigures figures;
  Volume volume;
  Evidence evidence;
};

// Walks the stream once and calls each(item) for every item.
template <typename Each>
Pass Walk(const trace::TraceFile& file, Each each) {
  Pass pass;
  TraceFigures& figures = pass.figures;
  figures.bytes = file.bytes().size();
  figures.header_bytes = file.index().header_bytes;
  figures.pcpus = file.index().pcpus.size();
  bool begun = false;
  Volume& volume = pass.volume;
  trace::OrderedStream stream = file.Stream();
  for (auto batch = stream.Batch(); !batch.empty(); batch = stream.Batch()) {
    pass.evidence.Observe(batch);
    for (const Item& item : batch) {
      if (item.kind == ItemKind::kRecord) [[likely]] {
        volume.Add(item.record);
      } else {
        CountRare(item, figures, volume);
        if (item.kind == ItemKind::kPcpuBegin && !begun) {
          begun = true;
          figures.first = item.record.tsc;
        }
      }
      each(item);
    }
    figures.last = batch.back().record.tsc;
  }
  const RecordCount all = volume.Total();
  figures.records = all.records;
  figures.record_bytes = all.bytes;
  return pass;
}

// Everything in this thread.
Pass WalkAlone(const trace::TraceFile& file, Lane& lane) {
  return Walk(file, [&](const Item& item) { lane.Take(item); });
}

// The items that concern `beside` are handed to a thread of its own.
Pass WalkBeside(const trace::TraceFile& file, Lane& here, Lane& beside) {
  Handover handover;
  std::thread taker([&] {
    for (auto batch = handover.Take(); !batch.empty(); batch = handover.Take()) {
      for (const Item& item : batch) beside.Take(item);
    }
  });
  Pass pass = Walk(file, [&](const Item& item) {
    if (beside.Concerns(item)) handover.Give(item);
    if (here.Concerns(item)) here.Take(item);
  });
  handover.Close();
  taker.join();
  return pass;
}

}  // namespace

absl::StatusOr<Result> Run(const trace::TraceFile& file, const Known& known,
                           const std::vector<std::unique_ptr<Analysis>>& analyses,
                           unsigned threads) {
  std::vector<Analysis*> of_host;
  std::vector<Analysis*> of_hvm;
  for (const auto& analysis : analyses) {
    Subscriptions wanted;
    analysis->Subscribe(wanted);
    (threads > 1 && wanted.OfHvm() ? of_hvm : of_host).push_back(analysis.get());
  }
  Lane here(of_host);
  Lane beside(of_hvm);
  Pass pass = of_hvm.empty() ? WalkAlone(file, here) : WalkBeside(file, here, beside);
  here.Finish();
  beside.Finish();
  Result result;
  result.trace = std::move(pass.figures);
  TraceFigures& figures = result.trace;
  figures.faults = here.timeline().faults();
  if (figures.faults.runstate_mismatches > 0 && figures.pcpus > 1) {
    figures.skews = correlate::CompareClocks(file, {figures.first, figures.last});
  }
  for (const auto& analysis : analyses) analysis->Finish(figures.last);
  XENOSCOPE_RETURN_IF_ERROR(CheckBytes(figures, file.name()));
  XENOSCOPE_RETURN_IF_ERROR(CheckLimits(file, here.timeline(), {figures.first, figures.last}));

  result.facts = pass.evidence.Conclude(known, {figures.first, figures.last});
  result.facts.volume = std::move(pass.volume);
  result.document = Describe(analyses, here.timeline(), result.facts);
  return result;
}

}  // namespace xenoscope::analysis
