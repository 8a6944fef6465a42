#include "analysis/run.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "analysis/dispatcher.h"
#include "analysis/evidence.h"
#include "base/error.h"

namespace xenoscope::analysis {

Dispatcher::Dispatcher(const std::vector<std::unique_ptr<Analysis>>& analyses) {
  for (const auto& analysis : analyses) {
    Subscriptions wanted;
    analysis->Subscribe(wanted);
    for (const trace::Event event : wanted.events_) {
      by_event_[static_cast<size_t>(event)].push_back(analysis.get());
    }
    if (wanted.runs_) runs_.push_back(analysis.get());
    if (wanted.exits_) exits_.push_back(analysis.get());
    if (wanted.states_) states_.push_back(analysis.get());
    if (wanted.losses_) losses_.push_back(analysis.get());
  }
  for (auto& called : by_event_) called.push_back(nullptr);
}

namespace {

using trace::Item;
using trace::ItemKind;

// Counts what is not a known record.
void CountRare(const Item& item, TraceFigures& figures) {
  switch (item.kind) {
    case ItemKind::kUnknownEvent:
      ++figures.unknown_events;
      ++figures.unknown_by_id[item.record.id];
      break;
    case ItemKind::kMalformed:
      ++figures.malformed;
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
  ++figures.records;
  figures.record_bytes += item.record.SizeBytes();
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
  std::set<VcpuRef> vcpus;
  for (const auto& vcpu : timeline.vcpus()) vcpus.insert(vcpu->ref);
  for (const VcpuRef ref : vcpus) {
    if (document.domains.empty() || document.domains.back().domain != ref.domain) {
      DomainSection& domain = document.domains.emplace_back(DomainSection{ref.domain, {}, {}});
      for (const auto& analysis : analyses) {
        analysis->DescribeDomain(ref.domain, facts, domain.section);
      }
    }
    VcpuSection& vcpu = document.domains.back().vcpus.emplace_back(VcpuSection{ref.vcpu, {}});
    for (const auto& analysis : analyses) analysis->DescribeVcpu(ref, facts, vcpu.section);
  }
  return document;
}

}  // namespace

absl::StatusOr<Result> Run(const trace::TraceFile& file, const Known& known,
                           std::vector<std::unique_ptr<Analysis>> analyses) {
  Dispatcher dispatcher(analyses);
  correlate::Timeline timeline(dispatcher);
  Evidence evidence;

  Result result;
  TraceFigures& figures = result.trace;
  figures.bytes = file.bytes().size();
  figures.header_bytes = file.index().header_bytes;
  figures.pcpus = file.index().pcpus.size();
  bool begun = false;
  uint64_t known_records = 0;
  uint64_t known_bytes = 0;
  trace::OrderedStream stream = file.Stream();
  for (auto batch = stream.Batch(); !batch.empty(); batch = stream.Batch()) {
    evidence.Observe(batch);
    for (const Item& item : batch) {
      if (item.kind == ItemKind::kRecord) [[likely]] {
        ++known_records;
        known_bytes += item.record.SizeBytes();
        if (dispatcher.Wants(item.record.event)) {
          dispatcher.Record({item.record, timeline.Current(item.record.pcpu)});
        }
      } else {
        CountRare(item, figures);
        if (item.kind == ItemKind::kLossBegin || item.kind == ItemKind::kLost) {
          dispatcher.Loss(item);
        }
        if (item.kind == ItemKind::kPcpuBegin && !begun) {
          begun = true;
          figures.first = item.record.tsc;
        }
      }
      timeline.Take(item);
    }
  }
  timeline.Finish();
  figures.last = timeline.now();
  figures.records += known_records;
  figures.record_bytes += known_bytes;
  figures.faults = timeline.faults();
  for (const auto& analysis : analyses) analysis->Finish(figures.last);
  XENOSCOPE_RETURN_IF_ERROR(CheckBytes(figures, file.name()));

  result.facts = evidence.Conclude(known, {figures.first, figures.last});
  result.document = Describe(analyses, timeline, result.facts);
  return result;
}

}  // namespace xenoscope::analysis
