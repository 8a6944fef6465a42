#include "report/profile/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/document.h"
#include "analysis/find_figure.h"

namespace xenoscope::report {
namespace {

constexpr size_t kReasons = 3;  // VM exits in a domain's row
constexpr size_t kMinFunctions = 5;
constexpr size_t kMinThreads = 5;
constexpr size_t kBatchThreads = 20;  // where the output has no end

// Visits the rows of the vCPU's group of this key.
template <typename Visitor>
void ForEachRow(const analysis::VcpuSection& vcpu, std::string_view group_key, Visitor visit) {
  const analysis::MetricGroup* const group = analysis::FindGroup(vcpu.section, group_key);
  if (group == nullptr) return;
  for (const analysis::MetricRow& row : group->rows) visit(row);
}

// Adds the figures of a vCPU to its domain's.
void AddVcpu(const analysis::VcpuSection& vcpu, TopDomain& out) {
  ++out.vcpus;
  ForEachRow(vcpu, "runstates", [&](const analysis::MetricRow& row) {
    const auto cycles = static_cast<double>(analysis::Figure(row, "cycles"));
    out.all += cycles;
    if (row.name == "running") out.running += cycles;
    if (row.name == "runnable") out.runnable += cycles;
  });
  ForEachRow(vcpu, "exits", [&](const analysis::MetricRow& row) {
    const uint64_t count = analysis::Figure(row, "count");
    out.exits += count;
    const auto known =
        std::ranges::find(out.reasons, row.name, &std::pair<std::string, uint64_t>::first);
    if (known == out.reasons.end()) {
      out.reasons.emplace_back(row.name, count);
    } else {
      known->second += count;
    }
  });
  uint64_t hypercalls = out.hypercalls.value_or(0);
  ForEachRow(vcpu, "hypercalls",
             [&](const analysis::MetricRow& row) { hypercalls += analysis::Figure(row, "count"); });
  out.hypercalls = hypercalls;
}

double PerSecond(uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

std::string Rate(uint64_t count, double seconds) {
  return fmt::format("{:.0f}", PerSecond(count, seconds));
}

std::string Reasons(const TopDomain& domain) {
  constexpr std::string_view kPrefix = "VMEXIT_";
  std::string text;
  for (size_t i = 0; i < std::min(kReasons, domain.reasons.size()); ++i) {
    std::string_view name = domain.reasons[i].first;
    if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                        Rate(domain.reasons[i].second, domain.seconds));
  }
  return text;
}

// Returns the domains, busiest first.
Table DomainTable(const TopFrame& frame) {
  Table table;
  table.columns = {{"domain", "domain"},
                   {"vcpus", "vcpus", ColumnUnit::kCount},
                   {"cpu", "cpu", ColumnUnit::kShare},
                   {"runnable", "runnable", ColumnUnit::kShare},
                   {"idle", "idle", ColumnUnit::kShare},
                   {"hypercalls", "hypercalls/s", ColumnUnit::kCount},
                   {"exits", "exits/s", ColumnUnit::kCount},
                   {"reasons", "top exits/s", ColumnUnit::kText, Shorten::kEnd}};
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  for (const TopDomain& domain : frame.domains) {
    table.AddRow(
        {domain.title, domain.vcpus, share(domain.running, domain.seconds),
         share(domain.runnable, domain.all),
         share(domain.all - domain.running - domain.runnable, domain.all),
         domain.hypercalls ? Cell(uint64_t(PerSecond(*domain.hypercalls, domain.seconds))) : Cell(),
         uint64_t(PerSecond(domain.exits, domain.seconds)), Reasons(domain)});
  }
  table.Sort(table.Find("cpu"), /*descending=*/true);
  return table;
}

std::string Head(const TopFrame& frame) {
  std::string head = fmt::format("{}: {} {:.1f} s", frame.recording,
                                 frame.over ? "complete, last" : "last", frame.seconds);
  if (frame.profile != nullptr) {
    head += fmt::format("   {} samples/s of {}, {} lost",
                        Rate(frame.profile->counts.samples, frame.seconds), frame.profile->event,
                        CellText(frame.lost_samples, ColumnUnit::kCount));
  }
  if (frame.trace != nullptr) {
    constexpr double kMega = 1e6;
    head += fmt::format(
        "   trace {:.1f} MB/s, {} records lost",
        PerSecond(frame.trace->trace.bytes,
                  frame.trace->metadata.clock.Seconds(frame.trace->metadata.range.Length())) /
            kMega,
        CellText(frame.trace->trace.lost_records, ColumnUnit::kCount));
  }
  return head;
}

// Returns the first `rows` lines of the text; all if `rows` is 0.
std::string Lines(const std::string& text, size_t rows) {
  if (rows == 0) return text;
  size_t end = 0;
  for (size_t line = 0; line < rows && end < text.size(); ++line) {
    const size_t next = text.find('\n', end);
    if (next == std::string::npos) return text;
    end = next + 1;
  }
  return text.substr(0, end);
}

// Returns the threads, of which functions leave half of the rows.
std::string Threads(const TopFrame& frame, const TopLayout& layout, const std::string& above) {
  Table table = *frame.threads;
  if (table.groups.empty()) return "\nno kernel's events in this interval\n";
  size_t limit = kBatchThreads;
  if (layout.rows > 0) {
    const auto used = static_cast<size_t>(std::ranges::count(above, '\n'));
    limit = std::max(kMinThreads, (layout.rows - std::min(layout.rows, used)) / 2);
  }
  table.Limit(limit);
  return '\n' + ToText(table, layout.style);
}

std::string Functions(const TopFrame& frame, const TopLayout& layout) {
  const correlate::PlacingCounts& counts = frame.profile->counts;
  Table table = ProfileTable(*frame.profile, layout.selection);
  if (table.groups.empty()) return "\nno samples in this interval\n";
  TextStyle style = layout.style;
  style.figures_first = true;
  std::string text = '\n' + ToText(table, style);
  if (counts.Attributed() < counts.samples) {
    text += fmt::format("{} of {} samples attributed\n",
                        CellText(counts.Attributed(), ColumnUnit::kCount),
                        CellText(counts.samples, ColumnUnit::kCount));
  }
  return text;
}

}  // namespace

std::vector<TopDomain> TopDomains(const analysis::AnalysisResult& trace,
                                  const std::function<std::string(DomainId)>& domain_name) {
  const Clock& clock = trace.metadata.clock;
  std::vector<TopDomain> out;
  for (const analysis::DomainSection& domain : trace.document.domains) {
    if (domain.domain == kIdleDomain) continue;
    TopDomain figures;
    for (const analysis::VcpuSection& vcpu : domain.vcpus) AddVcpu(vcpu, figures);
    if (figures.all == 0) continue;
    figures.title = DomainTitle(domain.domain, domain_name(domain.domain));
    figures.seconds = clock.Seconds(trace.metadata.range.Length());
    for (double* const cycles : {&figures.running, &figures.runnable, &figures.all}) {
      *cycles /= static_cast<double>(clock.hz);
    }
    std::ranges::stable_sort(figures.reasons, std::ranges::greater(),
                             &std::pair<std::string, uint64_t>::second);
    out.push_back(std::move(figures));
  }
  return out;
}

std::string TopText(const TopFrame& frame, const TopLayout& layout) {
  std::string text = Head(frame);
  if (layout.style.width > 0) text = Shortened(text, layout.style.width, Shorten::kEnd);
  text += '\n';
  if (!frame.has_xen) {
    text += "no Xen on this host: what is shown is this Linux, its kernel and its processes\n";
  }
  if (!frame.note.empty()) {
    text += (layout.style.width > 0 ? Shortened(frame.note, layout.style.width, Shorten::kEnd)
                                    : frame.note) +
            '\n';
  }
  if (!frame.domains.empty()) {
    Table domains = DomainTable(frame);
    // Functions take the rows that domains leave, and always some.
    constexpr size_t kOtherLines = 6;
    if (layout.rows > kOtherLines + kMinFunctions) {
      domains.Limit(layout.rows - kOtherLines - kMinFunctions);
    }
    text += '\n' + ToText(domains, layout.style);
  }
  if (frame.threads) text += Threads(frame, layout, text);
  if (frame.profile != nullptr) text += Functions(frame, layout);
  return Lines(text, layout.rows);
}

}  // namespace xenoscope::report
