// The size of each class of events in the trace, as a whole and by pCPU. The classes, and the parts
// of hvm, are those of xenalyze's "Log volume summary".
#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/summary/registry.h"

namespace xenoscope::analysis {
namespace {

using trace::Event;
using trace::RecordCount;
using trace::TraceSubclass;

// A class of events, or a part of the class before it.
struct Kind {
  std::string_view key;
  std::string_view name;
  bool whole;
};

constexpr std::array kKinds = {
    Kind{"gen", "gen", true},
    Kind{"gen_padding", "padding", false},
    Kind{"gen_lost", "loss marks", false},
    Kind{"sched", "sched", true},
    Kind{"sched_min", "runstates", false},
    Kind{"sched_class", "scheduler's own", false},
    Kind{"sched_verbose", "verbose", false},
    Kind{"dom0op", "dom0op", true},
    Kind{"hvm", "hvm", true},
    Kind{"hvm_vmentry", "vmentry", false},
    Kind{"hvm_vmexit", "vmexit", false},
    Kind{"hvm_handler", "handler", false},
    Kind{"hvm_emul", "emul", false},
    Kind{"mem", "mem", true},
    Kind{"pv", "pv", true},
    Kind{"pv_entry", "entry", false},
    Kind{"pv_subcall", "subcall", false},
    Kind{"shadow", "shadow", true},
    Kind{"hw", "hw", true},
    Kind{"hw_pm", "power", false},
    Kind{"hw_irq", "irq", false},
    Kind{"guest", "guest", true},
    Kind{"unknown", "unknown", true},
};
// Returns whether the table by pCPU has a column for it: those are xenalyze's lines.
constexpr bool ShownByPcpu(const Kind& kind) {
  return kind.whole || kind.key.substr(0, 4) == "hvm_";
}
constexpr size_t kNone = kKinds.size();
using Counts = std::array<RecordCount, kKinds.size()>;

constexpr size_t KindOf(std::string_view key) {
  size_t kind = 0;
  while (kKinds[kind].key != key) ++kind;
  return kind;
}

// Returns the part that holds the record, or its class where that has no parts.
constexpr size_t KindOf(Event event, TraceSubclass subclass) {
  switch (subclass) {
    case TraceSubclass::kGen:
      if (event == Event::kTraceWrapBuffer) return KindOf("gen_padding");
      return event == Event::kLostRecords ? KindOf("gen_lost") : KindOf("gen");
    case TraceSubclass::kSchedMin:
      return KindOf("sched_min");
    case TraceSubclass::kSchedClass:
      return KindOf("sched_class");
    case TraceSubclass::kSchedVerbose:
      return KindOf("sched_verbose");
    case TraceSubclass::kDom0DomOps:
      return KindOf("dom0op");
    case TraceSubclass::kHvmEntryExit:
      return event == Event::kHvmVmentry ? KindOf("hvm_vmentry") : KindOf("hvm_vmexit");
    case TraceSubclass::kHvmHandler:
      return KindOf("hvm_handler");
    case TraceSubclass::kHvmEmul:
      return KindOf("hvm_emul");
    case TraceSubclass::kMem:
      return KindOf("mem");
    case TraceSubclass::kPvEntry:
      return KindOf("pv_entry");
    case TraceSubclass::kPvSubcall:
      return KindOf("pv_subcall");
    case TraceSubclass::kShadow:
      return KindOf("shadow");
    case TraceSubclass::kHwPm:
      return KindOf("hw_pm");
    case TraceSubclass::kHwIrq:
      return KindOf("hw_irq");
    case TraceSubclass::kGuest:
      return KindOf("guest");
    case TraceSubclass::kUnknown:
    case TraceSubclass::kCount:
      break;
  }
  return KindOf("unknown");
}

void Add(size_t kind, const RecordCount& count, Counts& counts) {
  counts[kind].Add(count);
  if (kKinds[kind].whole) return;
  while (!kKinds[kind].whole) --kind;
  counts[kind].Add(count);
}

Counts Count(const trace::Volume& volume, PcpuId pcpu) {
  Counts counts{};
  for (size_t event = 0; event < trace::kEventCount; ++event) {
    const auto known = static_cast<Event>(event);
    Add(KindOf(known, trace::Info(known).subclass), volume.Known(pcpu, known), counts);
  }
  for (size_t i = 0; i < static_cast<size_t>(TraceSubclass::kCount); ++i) {
    const auto subclass = static_cast<TraceSubclass>(i);
    Add(KindOf(Event::kUnknown, subclass), volume.Other(pcpu, subclass), counts);
  }
  return counts;
}

constexpr GroupInfo kVolumeGroup{"volume", "Log volume", SectionLevel::kTrace};
constexpr GroupInfo kVolumeByPcpuGroup{"volume_by_pcpu", "Bytes by pCPU", SectionLevel::kTrace,
                                       GroupLayout::kTable, RowSubject::kPcpus};

class LogVolume final : public Mergeable<LogVolume> {
 public:
  void Subscribe(Subscriptions& /*subscriptions*/) const override {}

  void Merge(LogVolume& /*earlier*/) {}

  [[nodiscard]] std::vector<GroupInfo> Groups() const override {
    return {kVolumeGroup, kVolumeByPcpuGroup};
  }
  void DescribeTrace(const TraceMetadata& metadata, Section& out) const override {
    Counts all{};
    std::vector<std::pair<PcpuId, Counts>> pcpus;
    for (uint32_t i = 0; i < metadata.volume.pcpus(); ++i) {
      const PcpuId pcpu{i};
      if (!metadata.volume.Has(pcpu)) continue;
      pcpus.emplace_back(pcpu, Count(metadata.volume, pcpu));
      for (size_t kind = 0; kind < kNone; ++kind) all[kind].Add(pcpus.back().second[kind]);
    }
    const RecordCount total = metadata.volume.Total();

    MetricGroup& classes = out.AddGroup(kVolumeGroup);
    for (size_t kind = 0; kind < kNone; ++kind) {
      if (all[kind].records == 0) continue;
      MetricRow row{std::string(kKinds[kind].name), {}, {}};
      row.Add("records", MetricUnit::kCount, all[kind].records)
          .Add("bytes", MetricUnit::kBytes, all[kind].bytes)
          .Add("of_bytes", static_cast<double>(all[kind].bytes) / static_cast<double>(total.bytes));
      (kKinds[kind].whole ? classes.rows : classes.rows.back().parts).push_back(std::move(row));
    }
    MetricGroup& table = out.AddGroup(kVolumeByPcpuGroup);
    for (const auto& [pcpu, counts] : pcpus) {
      RecordCount sum;
      for (size_t kind = 0; kind < kNone; ++kind) {
        if (kKinds[kind].whole) sum.Add(counts[kind]);
      }
      MetricRow row{fmt::format("p{}", pcpu.value), {}, {}};
      row.Add("records", MetricUnit::kCount, sum.records)
          .Add("bytes", MetricUnit::kBytes, sum.bytes);
      for (size_t kind = 0; kind < kNone; ++kind) {
        if (all[kind].records == 0 || !ShownByPcpu(kKinds[kind])) continue;
        row.Add(std::string(kKinds[kind].key), MetricUnit::kBytes, counts[kind].bytes);
      }
      table.rows.push_back(std::move(row));
    }
    if (pcpus.size() < 2) table.layout = GroupLayout::kDetail;
  }
};

}  // namespace

std::unique_ptr<Analysis> MakeLogVolume() { return std::make_unique<LogVolume>(); }

}  // namespace xenoscope::analysis
