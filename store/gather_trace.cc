#include "store/gather_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/find_figure.h"
#include "store/bounded_text.h"

namespace xenoscope::store {
namespace {

using analysis::Figure;
using analysis::FindGroup;
using analysis::FindRow;
using analysis::MetricRow;

constexpr char kOthers[] = "(others)";

// A subreason of an exit.
struct ExitPart {
  std::string name;
  uint64_t count = 0;
  uint64_t cycles = 0;
};

// Returns the subreasons of an exit reason: what its handler did, with the number of that.
std::vector<ExitPart> ExitPartsOf(const MetricRow& reason) {
  std::vector<ExitPart> parts;
  for (const MetricRow& kind : reason.parts) {
    ExitPart rest{kind.name, Figure(kind, "count"), Figure(kind, "cycles")};
    for (const MetricRow& number : kind.parts) {
      const ExitPart& part =
          parts.emplace_back(ExitPart{fmt::format("{}: {}", kind.name, number.name),
                                      Figure(number, "count"), Figure(number, "cycles")});
      rest.count -= std::min(rest.count, part.count);
      rest.cycles -= std::min(rest.cycles, part.cycles);
    }
    if (rest.count > 0) parts.push_back(std::move(rest));
  }
  std::ranges::stable_sort(parts, std::ranges::greater(), &ExitPart::cycles);
  if (parts.size() <= kMostExitParts) return parts;
  ExitPart others{kOthers, 0, 0};
  for (size_t i = kMostExitParts; i < parts.size(); ++i) {
    others.count += parts[i].count;
    others.cycles += parts[i].cycles;
  }
  parts.resize(kMostExitParts);
  parts.push_back(std::move(others));
  return parts;
}

class TraceGatherer {
 public:
  TraceGatherer(const analysis::Document& document,
                const std::function<std::string(DomainId)>& label, Dictionary& dictionary,
                SliceSums& sums)
      : document_(document), dictionary_(dictionary), sums_(sums) {
    for (const analysis::DomainSection& domain : document.domains) {
      const std::string name = BoundedName(label(domain.domain));
      for (const analysis::VcpuSection& vcpu : domain.vcpus) {
        domains_[ToString(VcpuRef{domain.domain, vcpu.vcpu})] = name;
      }
    }
  }

  void AddVcpu(VcpuRef ref, const analysis::Section& section) {
    text_ = ToString(ref);
    vcpu_ = dictionary_.vcpus.Intern({domains_.at(text_), ref.vcpu.value});
    AddRunstates(section);
    AddWaits(section);
    AddExits(FindGroup(section, "exits"), "");
    AddExits(FindGroup(section, "nested_exits"), "nested ");
    AddHypercalls(section);
  }

 private:
  void Add(TraceFigure figure, std::string_view name, std::string_view part, std::string other,
           uint64_t count, uint64_t cycles) {
    if (count == 0 && cycles == 0) return;
    sums_.trace.push_back({figure, vcpu_, BoundedName(name), BoundedName(part), std::move(other),
                           static_cast<double>(count), static_cast<double>(cycles)});
  }

  // All time of each state, also where the trace has only a part of it.
  void AddRunstates(const analysis::Section& section) {
    const MetricRow* const times = FindRow(document_.trace, "vcpus", text_);
    if (times == nullptr) return;
    for (const analysis::Metric& time : times->metrics) {
      const MetricRow* const whole = FindRow(section, "runstates", time.key);
      Add(kRunstateFigure, time.key, "", "", whole == nullptr ? 0 : Figure(*whole, "count"),
          Figure(*times, time.key));
    }
  }

  // Waits for vCPUs of one domain are one: numbers of vCPUs say little, and need much space.
  void AddWaits(const analysis::Section& section) {
    absl::flat_hash_map<std::pair<std::string, std::string>, uint64_t> waits;
    if (const analysis::MetricGroup* const group = FindGroup(section, "waited_for")) {
      for (const MetricRow& runner : group->rows) {
        const auto domain = domains_.find(runner.name);
        const std::string& other = domain == domains_.end() ? runner.name : domain->second;
        for (const MetricRow& cause : runner.parts) {
          waits[{cause.name, other}] += Figure(cause, "cycles");
        }
      }
    }
    if (const analysis::MetricGroup* const group = FindGroup(section, "waited_for_edges")) {
      for (const MetricRow& row : group->rows) waits[{row.name, ""}] += Figure(row, "cycles");
    }
    for (const auto& [key, cycles] : waits) {
      Add(kWaitFigure, key.first, "", key.second, 0, cycles);
    }
  }

  void AddExits(const analysis::MetricGroup* group, const std::string& prefix) {
    if (group == nullptr) return;
    for (const MetricRow& reason : group->rows) {
      for (const ExitPart& part : ExitPartsOf(reason)) {
        Add(kExitFigure, prefix + reason.name, part.name, "", part.count, part.cycles);
      }
    }
  }

  // Those of a PV guest are records of their own, others are VM exits.
  void AddHypercalls(const analysis::Section& section) {
    if (const analysis::MetricGroup* const calls = FindGroup(section, "hypercalls")) {
      for (const MetricRow& call : calls->rows) AddPvCall(call);
    }
    const analysis::MetricGroup* const exits = FindGroup(section, "exits");
    if (exits == nullptr) return;
    for (const MetricRow& reason : exits->rows) {
      for (const MetricRow& kind : reason.parts) {
        if (kind.name == "hypercall") AddCallsOfExits(kind);
      }
    }
  }

  void AddPvCall(const MetricRow& call) {
    uint64_t rest = Figure(call, "count");
    for (const MetricRow& operation : call.parts) {
      const uint64_t count = std::min(rest, Figure(operation, "count"));
      rest -= count;
      Add(kHypercallFigure, call.name, operation.name, "", count, 0);
    }
    Add(kHypercallFigure, call.name, "", "", rest, 0);
  }

  void AddCallsOfExits(const MetricRow& kind) {
    uint64_t count = Figure(kind, "count");
    uint64_t cycles = Figure(kind, "cycles");
    for (const MetricRow& call : kind.parts) {
      count -= std::min(count, Figure(call, "count"));
      cycles -= std::min(cycles, Figure(call, "cycles"));
      Add(kHypercallFigure, call.name, "", "", Figure(call, "count"), Figure(call, "cycles"));
    }
    Add(kHypercallFigure, kOthers, "", "", count, cycles);
  }

  const analysis::Document& document_;
  Dictionary& dictionary_;
  SliceSums& sums_;
  absl::flat_hash_map<std::string, std::string> domains_;  // by how the document names a vCPU
  std::string text_;                                       // of the vCPU whose figures are added
  VcpuNumber vcpu_;
};

}  // namespace

void GatherTrace(const analysis::Document& document, Cycles traced,
                 const std::function<std::string(DomainId)>& label, Dictionary& dictionary,
                 SliceSums& sums) {
  TraceGatherer gatherer(document, label, dictionary, sums);
  for (const analysis::DomainSection& domain : document.domains) {
    if (domain.domain == kIdleDomain) continue;
    for (const analysis::VcpuSection& vcpu : domain.vcpus) {
      gatherer.AddVcpu({domain.domain, vcpu.vcpu}, vcpu.section);
    }
  }
  sums.counters.push_back({std::string(kTracedCounter), 1});
  sums.counters.push_back({std::string(kHypercallsCounter), 1});
  sums.counters.push_back({std::string(kTracedCyclesCounter), static_cast<double>(traced)});
}

void AddFinding(std::string_view rule, std::string_view domain, double cycles, SliceSums& sums) {
  const double time = std::max(std::round(cycles), 0.0);
  const std::string other = BoundedName(domain);
  const auto known = std::ranges::find_if(sums.trace, [&](const TraceSums& row) {
    return row.figure == kFindingFigure && row.name == rule && row.other == other;
  });
  if (known != sums.trace.end()) {
    known->cycles += time;
    return;
  }
  sums.trace.push_back({kFindingFigure, kAllVcpus, BoundedName(rule), "", other, 1, time});
}

}  // namespace xenoscope::store
