#include "report/summary/summary_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "analysis/find_figure.h"
#include "base/parallel.h"
#include "report/summary/guest_clock_text.h"
#include "report/summary/skew_text.h"
#include "report/table/table.h"
#include "report/table/table_csv.h"
#include "report/terminal_text.h"

namespace xenoscope::report {
namespace {

using analysis::AnalysisResult;
using analysis::Metric;
using nlohmann::ordered_json;

// Returns what `make` makes of each domain, on all threads.
template <typename Make>
auto OfEachDomain(const analysis::Document& document, const Make& make) {
  constexpr size_t kDomainsPerThread = 8;  // take longer than a thread's start
  std::vector<std::invoke_result_t<Make, const analysis::DomainSection&>> made(
      document.domains.size());
  ForEachInParallel(made.size(), kDomainsPerThread,
                    [&](size_t i) { made[i] = make(document.domains[i]); });
  return made;
}

// ---- JSON

ordered_json JsonValue(const Metric& figure) {
  return std::visit([](const auto& value) { return ordered_json(value); }, figure.value);
}

ordered_json JsonRow(const analysis::MetricRow& row) {
  ordered_json out = ordered_json::object();
  for (const Metric& figure : row.metrics) out[figure.key] = JsonValue(figure);
  if (!row.parts.empty()) {
    ordered_json& parts = out["parts"] = ordered_json::object();
    for (const analysis::MetricRow& part : row.parts) parts[part.name] = JsonRow(part);
  }
  return out;
}

// Adds the groups of the section to the fields of `fields`. No field is lost: a group with the name
// of a field gets "_table" at the end of its name.
void AddSection(const analysis::Section& section, const ordered_json& fields, ordered_json& out) {
  for (const analysis::MetricGroup& group : section.groups) {
    const std::string key = fields.contains(group.key) ? group.key + "_table" : group.key;
    ordered_json& rows = out[key] = ordered_json::object();
    // Rows are appended, as a look-up of each name would take time in the square of their number.
    auto& list = rows.get_ref<ordered_json::object_t&>();
    absl::flat_hash_set<std::string_view> names;
    for (const analysis::MetricRow& row : group.rows) {
      if (names.insert(row.name).second) list.emplace_back(row.name, JsonRow(row));
    }
  }
}

ordered_json JsonSkew(const correlate::ClockSkew& skew) {
  ordered_json out = {{"pcpu", skew.pcpu.value},
                      {"reference", skew.reference.value},
                      {"kind", ToString(skew.kind)},
                      {"first_proof_offset", skew.proof_offset}};
  if (skew.kind == correlate::SkewKind::kUnknown) return out;
  const auto range = [](correlate::SkewRange cycles) {
    return ordered_json{{"least", cycles.min}, {"most", cycles.max}};
  };
  out["ahead_at_first"] = range(skew.first);
  out["ahead_at_last"] = range(skew.last);
  return out;
}

ordered_json JsonTrace(const AnalysisResult& result) {
  const analysis::TraceTotals& trace = result.trace;
  ordered_json out = {
      {"bytes", trace.bytes},
      {"records", trace.records},
      {"lost_records", trace.lost_records},
      {"pcpus", trace.pcpus},
      {"first_tsc", trace.first.value},
      {"last_tsc", trace.last.value},
      {"cpu_hz", result.metadata.clock.hz},
      {"cpu_hz_source", ToString(result.metadata.clock.source)},
      {"vendor", trace::ToString(result.metadata.dialect.vendor)},
      {"vendor_source", trace::ToString(result.metadata.dialect.vendor_source)},
      {"loss_marks", trace.loss_marks},
      {"unknown_events", trace.unknown_events},
      {"malformed_records", trace.unread.malformed},
      {"first_malformed_offset", trace.first_malformed_offset},
      {"padding_records", trace.padding},
      {"damages", trace.unread.damages},
      {"damaged_bytes", trace.unread.damaged_bytes},
      {"runstate_mismatches", trace.faults.runstate_mismatches},
      {"first_mismatch_offset", trace.faults.first_mismatch_offset},
      {"exits_without_vcpu", trace.faults.exits_without_vcpu},
  };
  ordered_json& skews = out["clock_skews"] = ordered_json::array();
  for (const correlate::ClockSkew& skew : result.metadata.skews) skews.push_back(JsonSkew(skew));
  ordered_json& clocks = out["guest_clocks"] = ordered_json::array();
  for (const correlate::DomainClock& clock : trace.guest_clocks) {
    clocks.push_back(JsonGuestClock(clock));
  }
  ordered_json& unknown = out["unknown_by_event"] = ordered_json::object();
  for (const auto& [id, count] : trace.unknown_by_id) unknown[fmt::format("0x{:x}", id)] = count;
  AddSection(result.document.trace, ordered_json(out), out);
  return out;
}

// The keys that every vCPU has, whatever its kind. They may be empty, so that scripts need not ask
// for the kind.
constexpr const char* kKeysOfEveryVcpu[] = {"runstates",  "runnable", "exits",
                                            "hypercalls", "traps",    "pv"};

ordered_json DomainJson(const analysis::DomainSection& domain, const DomainNames& names) {
  ordered_json entry = {{"domid", domain.domain.value}, {"name", names(domain.domain)}};
  AddSection(domain.section, {{"domid", 0}, {"name", ""}, {"vcpus", {}}}, entry);
  ordered_json& vcpus = entry["vcpus"] = ordered_json::array();
  for (const analysis::VcpuSection& vcpu : domain.vcpus) {
    ordered_json inner = {{"vcpu", vcpu.vcpu.value}};
    for (const char* key : kKeysOfEveryVcpu) inner[key] = ordered_json::object();
    AddSection(vcpu.section, {{"vcpu", 0}}, inner);
    vcpus.push_back(std::move(inner));
  }
  return entry;
}

// ---- text

ColumnUnit TableUnit(analysis::MetricUnit unit) {
  switch (unit) {
    case analysis::MetricUnit::kCount:
      return ColumnUnit::kCount;
    case analysis::MetricUnit::kBytes:
      return ColumnUnit::kBytes;
    case analysis::MetricUnit::kCycles:
      return ColumnUnit::kSeconds;
    case analysis::MetricUnit::kFraction:
      return ColumnUnit::kShare;
    case analysis::MetricUnit::kHex:
      return ColumnUnit::kHex;
    case analysis::MetricUnit::kText:
      return ColumnUnit::kText;
  }
  return ColumnUnit::kText;
}

std::string Title(const std::string& key) {
  if (key == "cycles") return "time";
  if (key == "p5") return "5%";
  if (key == "p50") return "50%";
  if (key == "p95") return "95%";
  if (key == "exits_per_second") return "exits/s";
  if (key == "in_xen") return "in Xen";
  std::string title = key;
  std::replace(title.begin(), title.end(), '_', ' ');
  return title;
}

bool SameFigures(const std::vector<Metric>& a, const std::vector<Metric>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Metric& x, const Metric& y) {
    return x.key == y.key && x.value == y.value;
  });
}

bool Has(const analysis::MetricRow& row, std::string_view key) {
  return std::any_of(row.metrics.begin(), row.metrics.end(),
                     [key](const Metric& figure) { return figure.key == key; });
}

// Whether a row or one of its parts has the key.
bool AnyHas(const std::vector<analysis::MetricRow>& rows, std::string_view key) {
  return std::any_of(rows.begin(), rows.end(), [key](const analysis::MetricRow& row) {
    return Has(row, key) || AnyHas(row.parts, key);
  });
}

// A group as a table. It has a column for each key of its rows. A group with "cycles" has the share
// of the trace's time too, and the average where there is a count.
class GroupTable {
 public:
  GroupTable(const analysis::MetricGroup& group, const analysis::TraceMetadata& metadata)
      : metadata_(&metadata), counted_(AnyHas(group.rows, "count")) {
    // A narrow terminal has to keep the beginning of "(364 more; --all)".
    const bool ranked = group.layout == analysis::GroupLayout::kRanked;
    table_.columns.push_back(
        {"name", group.title, ColumnUnit::kText, ranked ? Shorten::kEnd : Shorten::kMiddle});
    for (const analysis::MetricRow& row : group.rows) AddColumns(row);
    for (const analysis::MetricRow& row : group.rows) AddRow(row, 1);
  }
  const Table& table() const { return table_; }

 private:
  void AddColumns(const analysis::MetricRow& row) {
    for (const Metric& figure : row.metrics) {
      if (table_.Find(figure.key) != table_.columns.size()) continue;
      table_.columns.push_back(
          {figure.key, Title(figure.key), TableUnit(figure.unit), Shorten::kEnd});
      if (figure.key != "cycles") continue;
      table_.columns.push_back({"share", "share", ColumnUnit::kShare, Shorten::kEnd});
      if (!counted_) continue;
      table_.columns.push_back({"average", "average", ColumnUnit::kSeconds, Shorten::kEnd});
    }
    for (const analysis::MetricRow& part : row.parts) AddColumns(part);
  }

  Cell CellOf(const Metric& figure) const {
    if (figure.unit == analysis::MetricUnit::kCycles) {
      const auto* cycles = std::get_if<uint64_t>(&figure.value);
      if (cycles != nullptr) return metadata_->clock.Seconds(*cycles);
    }
    return std::visit([](const auto& value) { return Cell(value); }, figure.value);
  }

  void AddRow(const analysis::MetricRow& row, int indent) {
    std::vector<Cell> cells(table_.columns.size());
    // A single part that has the row's own figures adds only its name.
    const analysis::MetricRow* last = &row;
    std::string name = row.name;
    while (last->parts.size() == 1 && !last->metrics.empty() &&
           SameFigures(last->metrics, last->parts[0].metrics)) {
      last = &last->parts[0];
      name += ": " + last->name;
    }
    cells[0] = std::move(name);
    for (const Metric& figure : row.metrics) cells[table_.Find(figure.key)] = CellOf(figure);
    const size_t share = table_.Find("share");
    if (share < cells.size() && !std::holds_alternative<std::monostate>(cells[share - 1])) {
      const uint64_t cycles = analysis::Figure(row, "cycles");
      const uint64_t count = analysis::Figure(row, "count");
      const Cycles all = metadata_->range.Length();
      if (all > 0) cells[share] = static_cast<double>(cycles) / static_cast<double>(all);
      const size_t average = table_.Find("average");
      if (count > 0 && average < cells.size()) {
        cells[average] = metadata_->clock.Seconds(cycles) / static_cast<double>(count);
      }
    }
    table_.AddRow(std::move(cells), indent);
    for (const analysis::MetricRow& part : last->parts) AddRow(part, indent + 1);
  }

  const analysis::TraceMetadata* metadata_;
  bool counted_;
  Table table_;
};

// Returns what a remainder's row has: "1.2 ms (3 times)".
std::string RemainderFigure(bool timed, uint64_t count, Cycles cycles,
                            const analysis::TraceMetadata& metadata) {
  if (!timed) return CellText(count, ColumnUnit::kCount);
  const std::string time = CellText(metadata.clock.Seconds(cycles), ColumnUnit::kSeconds);
  return count > 1 ? fmt::format("{} ({} times)", time, count) : time;
}

// Returns the rows of a remainder in one line: "  not included above: open at the end 1.2 ms; ...".
// Of many rows it names the first few and sums up the others.
std::string RemainderText(const analysis::MetricGroup& group,
                          const analysis::TraceMetadata& metadata) {
  constexpr size_t kNamed = 4;
  const bool all = group.rows.size() <= kNamed + 1;
  const auto named = std::span(group.rows).first(all ? group.rows.size() : kNamed);
  std::string text;
  for (const analysis::MetricRow& row : named) {
    text += fmt::format("{}{} {}", text.empty() ? "  not included above: " : "; ", row.name,
                        RemainderFigure(Has(row, "cycles"), analysis::Figure(row, "count"),
                                        analysis::Figure(row, "cycles"), metadata));
  }
  if (all) return text + "\n";
  const auto others = std::span(group.rows).subspan(kNamed);
  uint64_t count = 0;
  Cycles cycles = 0;
  for (const analysis::MetricRow& row : others) {
    count += analysis::Figure(row, "count");
    cycles += analysis::Figure(row, "cycles");
  }
  return text + fmt::format("; {} more {}\n", others.size(),
                            RemainderFigure(AnyHas(group.rows, "cycles"), count, cycles, metadata));
}

// Returns the first rows of a long list, and one row for all others.
analysis::MetricGroup Shortened(const analysis::MetricGroup& group) {
  constexpr size_t kShown = 12;
  if (group.rows.size() <= kShown + 1) return group;
  analysis::MetricGroup shortened = group;
  const auto first_hidden = group.rows.begin() + kShown;
  shortened.rows.assign(group.rows.begin(), first_hidden);
  uint64_t others = 0;
  for (auto row = first_hidden; row != group.rows.end(); ++row)
    others += analysis::Figure(*row, "count");
  shortened.rows.push_back(analysis::MetricRow{"(others; --all shows more)", {}, {}}.Add(
      "count", analysis::MetricUnit::kCount, others));
  return shortened;
}

// Returns a row with the sum of the rows of a ranked group. A fraction of the sum is that of the
// first figures of the rows that have it.
analysis::MetricRow SumOf(std::string name, std::span<const analysis::MetricRow> rows) {
  struct Sum {
    Metric figure;
    uint64_t whole = 0;  // sum of the figures
    double part = 0;     // sum of the fractions, weighted
    double weight = 0;
  };
  std::vector<Sum> sums;
  for (const analysis::MetricRow& row : rows) {
    const auto weight = static_cast<double>(analysis::Figure(row, row.metrics.front().key));
    for (const Metric& figure : row.metrics) {
      auto sum = std::ranges::find(sums, figure.key, [](const Sum& one) { return one.figure.key; });
      if (sum == sums.end()) sum = sums.insert(sums.end(), Sum{figure, 0, 0, 0});
      if (const auto* fraction = std::get_if<double>(&figure.value)) {
        sum->part += *fraction * weight;
        sum->weight += weight;
      } else if (const auto* value = std::get_if<uint64_t>(&figure.value)) {
        sum->whole += *value;
      }
    }
  }
  analysis::MetricRow out{std::move(name), {}, {}};
  for (Sum& sum : sums) {
    if (sum.figure.unit != analysis::MetricUnit::kFraction) {
      sum.figure.value = sum.whole;
    } else if (sum.weight > 0) {
      sum.figure.value = sum.part / sum.weight;
    } else {
      continue;
    }
    out.metrics.push_back(std::move(sum.figure));
  }
  return out;
}

// Returns the group with the rows of the largest first figures first. Without `all` it has the
// first rows only, and one row for the sum of the others.
analysis::MetricGroup Ranked(const analysis::MetricGroup& group, bool all) {
  constexpr size_t kShown = 20;
  analysis::MetricGroup ranked = group;
  std::ranges::stable_sort(ranked.rows, std::ranges::greater(), [](const analysis::MetricRow& row) {
    return row.metrics.empty() ? 0 : analysis::Figure(row, row.metrics.front().key);
  });
  if (all || ranked.rows.size() <= kShown + 1) return ranked;
  const auto others = std::span(ranked.rows).subspan(kShown);
  analysis::MetricRow sum = SumOf(fmt::format("({} more; --all)", others.size()), others);
  ranked.rows.resize(kShown);
  ranked.rows.push_back(std::move(sum));
  return ranked;
}

// Adds the names of domains to rows that are of domains: "d5 web".
void AddDomainNames(const DomainNames& names, const analysis::Document& document,
                    analysis::MetricGroup& group) {
  absl::flat_hash_map<std::string, std::string> titles;
  for (const analysis::DomainSection& domain : document.domains) {
    const std::string name = names(domain.domain);
    const std::string label = ToString(domain.domain);
    if (!name.empty()) titles[label] = fmt::format("{} {}", label, name);
  }
  for (analysis::MetricRow& row : group.rows) {
    const auto title = titles.find(row.name);
    if (title != titles.end()) row.name = title->second;
  }
}

// Returns the group as text shows it.
analysis::MetricGroup ForText(const analysis::MetricGroup& group, const SummaryStyle& style) {
  if (group.layout == analysis::GroupLayout::kRanked) return Ranked(group, style.details);
  const bool shorten = group.layout == analysis::GroupLayout::kLongList && !style.details;
  return shorten ? Shortened(group) : group;
}

bool ShowsLayout(analysis::GroupLayout layout, const SummaryStyle& style) {
  return layout != analysis::GroupLayout::kDetail || style.details || style.chosen;
}

// Whether the text of a wide host shows groups of the whole trace with the subject.
bool ShowsSubject(analysis::RowSubject subject, const SummaryStyle& style) {
  switch (subject) {
    case analysis::RowSubject::kPcpus:
      return style.pcpus;
    case analysis::RowSubject::kVcpus:
      return style.vcpus;
    case analysis::RowSubject::kDomains:
    case analysis::RowSubject::kOther:
      return true;
  }
  return true;
}

std::string SectionText(const analysis::Section& section, const analysis::TraceMetadata& metadata,
                        const SummaryStyle& style) {
  std::string text;
  for (const analysis::MetricGroup& group : section.groups) {
    if (group.rows.empty()) continue;
    if (group.layout == analysis::GroupLayout::kRemainder) {
      text += RemainderText(group, metadata);
      continue;
    }
    if (!ShowsLayout(group.layout, style)) continue;
    if (!text.empty()) text += '\n';
    text += ToText(GroupTable(ForText(group, style), metadata).table(), style.text);
  }
  return text;
}

// Returns the section of the whole trace with the names of domains, without what the style leaves
// out.
analysis::Section TraceSection(const AnalysisResult& result, const DomainNames& names,
                               const SummaryStyle& style) {
  analysis::Section section = result.document.trace;
  std::erase_if(section.groups, [&](const analysis::MetricGroup& group) {
    return !ShowsSubject(group.subject, style);
  });
  for (analysis::MetricGroup& group : section.groups) {
    if (group.subject == analysis::RowSubject::kDomains) {
      AddDomainNames(names, result.document, group);
    }
  }
  return section;
}

// Says which tables of a wide host are not shown, and the options that show them.
std::string LeftOutText(const AnalysisResult& result, const SummaryStyle& style) {
  std::string text;
  if (!style.pcpus) text += fmt::format("tables of {} pCPUs: --pcpu\n", result.trace.pcpus);
  if (!style.vcpus) {
    size_t domains = 0;  // those with vCPUs
    size_t vcpus = 0;
    for (const analysis::DomainSection& domain : result.document.domains) {
      if (!domain.vcpus.empty()) ++domains;
      vcpus += domain.vcpus.size();
    }
    text += fmt::format("tables of {} domains and {} vCPUs: --vcpu, or --domain for some of them\n",
                        domains, vcpus);
  }
  return text.empty() ? text : "\nNot shown; --all shows everything:\n" + text;
}

std::string_view Plural(uint64_t count) { return count == 1 ? "" : "s"; }

std::string ContradictionText(const analysis::TraceTotals& trace,
                              const analysis::TraceMetadata& metadata) {
  const uint64_t count = trace.faults.runstate_mismatches;
  if (count == 0) return "";
  std::string text = fmt::format(
      "contradictory: {} runstate change{} from a state that the vCPU was not in, the first at "
      "byte {}; {}\n",
      count, Plural(count), trace.faults.first_mismatch_offset,
      metadata.skews.empty()
          ? "records are missing"
          : "the clocks of pCPUs differ, so runstates and waits across pCPUs are wrong");
  for (const correlate::ClockSkew& skew : metadata.skews) text += SkewText(skew, metadata.clock);
  return text;
}

std::string TraceText(const AnalysisResult& result) {
  const analysis::TraceTotals& trace = result.trace;
  const analysis::TraceMetadata& metadata = result.metadata;
  std::string text =
      fmt::format("{} of trace on {} pCPU{}: {} records, {} bytes\n",
                  CellText(metadata.clock.Seconds(metadata.range.Length()), ColumnUnit::kSeconds),
                  trace.pcpus, Plural(trace.pcpus), CellText(trace.records, ColumnUnit::kCount),
                  CellText(trace.bytes, ColumnUnit::kBytes));
  text += fmt::format("clock {:.6f} GHz ({}), vendor {} ({})\n",
                      static_cast<double>(metadata.clock.hz) / 1e9, ToString(metadata.clock.source),
                      trace::ToString(metadata.dialect.vendor),
                      trace::ToString(metadata.dialect.vendor_source));
  if (trace.lost_records > 0) {
    text += fmt::format("lost: {} records at {} place{}\n",
                        CellText(trace.lost_records, ColumnUnit::kCount), trace.loss_marks,
                        Plural(trace.loss_marks));
  }
  if (trace.unknown_events > 0) {
    text +=
        fmt::format("unknown: {} records of events that this version of xenoscope does not know (",
                    trace.unknown_events);
    bool first = true;
    for (const auto& [id, count] : trace.unknown_by_id) {
      text += fmt::format("{}0x{:x}: {}", first ? "" : ", ", id, count);
      first = false;
    }
    if (trace.unknown_by_id.size() == analysis::TraceTotals::kUnknownKept) text += ", ...";
    text += ")\n";
  }
  if (trace.unread.malformed > 0) {
    text += fmt::format(
        "malformed: {} record{} with a size or vCPU number that no version of Xen writes; the "
        "first at byte {}\n",
        trace.unread.malformed, Plural(trace.unread.malformed), trace.first_malformed_offset);
  }
  if (trace.unread.damages > 0) {
    text += fmt::format("damaged: {} place{}, {} bytes skipped\n", trace.unread.damages,
                        Plural(trace.unread.damages), trace.unread.damaged_bytes);
    for (const trace::Damage& damage : trace.first_damages) {
      text += fmt::format("  byte {}: {} ({} bytes)\n", damage.offset, trace::ToString(damage.kind),
                          damage.bytes);
    }
    if (trace.unread.damages > trace.first_damages.size()) {
      text += fmt::format("  and {} more\n", trace.unread.damages - trace.first_damages.size());
    }
  }
  text += GuestClockText(trace.guest_clocks, trace.first, metadata.clock);
  return text + ContradictionText(trace, metadata);
}

std::string Heading(const std::string& text, const TextStyle& style) {
  return fmt::format("\n{}\n", style.colour ? Styled(text, kBold) : text);
}

// Returns the tables of a domain and of its vCPUs.
std::string DomainText(const analysis::DomainSection& domain, const DomainNames& names,
                       const analysis::TraceMetadata& metadata, const SummaryStyle& style) {
  const std::string name = names(domain.domain);
  std::string text = Heading(fmt::format("Domain {}{}", ToString(domain.domain),
                                         name.empty() ? "" : fmt::format(" ({})", name)),
                             style.text);
  text += SectionText(domain.section, metadata, style);
  for (const analysis::VcpuSection& vcpu : domain.vcpus) {
    const std::string inner = SectionText(vcpu.section, metadata, style);
    if (inner.empty()) continue;
    text += Heading(ToString(VcpuRef{domain.domain, vcpu.vcpu}), style.text);
    text += inner;
  }
  return text;
}

// ---- CSV

void AddCsvRow(const std::string& domain, const std::string& vcpu, const std::string& group,
               const std::string& path, const analysis::MetricRow& row, Table& table) {
  const std::string name = path.empty() ? row.name : path + "/" + row.name;
  std::vector<Cell> cells(table.columns.size());
  cells[0] = domain;
  cells[1] = vcpu;
  cells[2] = group;
  cells[3] = name;
  for (const Metric& figure : row.metrics) {
    size_t column = table.Find(figure.key);
    if (column == table.columns.size()) {
      table.columns.push_back({figure.key, figure.key, TableUnit(figure.unit), Shorten::kEnd});
      if (figure.unit == analysis::MetricUnit::kCycles)
        table.columns.back().unit = ColumnUnit::kCount;
      cells.emplace_back();
    }
    cells[column] = std::visit([](const auto& value) { return Cell(value); }, figure.value);
  }
  table.AddRow(std::move(cells));
  for (const analysis::MetricRow& part : row.parts)
    AddCsvRow(domain, vcpu, group, name, part, table);
}

void AddCsvSection(const std::string& domain, const std::string& vcpu,
                   const analysis::Section& section, Table& table) {
  for (const analysis::MetricGroup& group : section.groups) {
    for (const analysis::MetricRow& row : group.rows) {
      AddCsvRow(domain, vcpu, group.key, "", row, table);
    }
  }
}

}  // namespace

void Select(const SummarySelection& selection, analysis::Document& document) {
  const auto wanted = [&](const analysis::Section& section) {
    return std::any_of(section.groups.begin(), section.groups.end(),
                       [](const analysis::MetricGroup& group) { return !group.rows.empty(); });
  };
  const auto reduce = [&](analysis::Section& section) {
    if (selection.sections.empty()) return;
    std::erase_if(section.groups, [&](const analysis::MetricGroup& group) {
      return std::find(selection.sections.begin(), selection.sections.end(), group.key) ==
             selection.sections.end();
    });
  };
  if (!selection.domains.empty()) {
    document.trace.groups.clear();
    std::erase_if(document.domains, [&](const analysis::DomainSection& domain) {
      return std::find(selection.domains.begin(), selection.domains.end(), domain.domain) ==
             selection.domains.end();
    });
  }
  reduce(document.trace);
  for (analysis::DomainSection& domain : document.domains) {
    reduce(domain.section);
    for (analysis::VcpuSection& vcpu : domain.vcpus) reduce(vcpu.section);
  }
  if (selection.sections.empty()) return;
  for (analysis::DomainSection& domain : document.domains) {
    std::erase_if(domain.vcpus,
                  [&](const analysis::VcpuSection& vcpu) { return !wanted(vcpu.section); });
  }
  std::erase_if(document.domains, [&](const analysis::DomainSection& domain) {
    return domain.vcpus.empty() && !wanted(domain.section);
  });
}

bool Keeps(const SummarySelection& selection, const analysis::GroupInfo& group) {
  if (!selection.domains.empty() && group.level == analysis::SectionLevel::kTrace) return false;
  return selection.sections.empty() ||
         std::ranges::find(selection.sections, group.key) != selection.sections.end();
}

bool TextMayShow(const analysis::GroupInfo& group, bool wide, const SummaryStyle& style) {
  if (!ShowsLayout(group.layout, style)) return false;
  if (style.details || !wide) return true;
  if (group.level != analysis::SectionLevel::kTrace) return style.vcpus;
  return ShowsSubject(group.subject, style);
}

bool IsWide(size_t pcpus, size_t domains) {
  return pcpus > kMostPcpusShown || domains > kMostDomainsShown;
}

bool IsWide(const AnalysisResult& result) {
  const auto domains = std::ranges::count_if(
      result.document.domains,
      [](const analysis::DomainSection& domain) { return domain.domain != kIdleDomain; });
  return IsWide(result.trace.pcpus, static_cast<size_t>(domains));
}

std::string GroupsText(const analysis::Section& section, const analysis::TraceMetadata& metadata,
                       const SummaryStyle& style) {
  return SectionText(section, metadata, style);
}

void AddGroupsJson(const analysis::Section& section, ordered_json& out) {
  AddSection(section, ordered_json(out), out);
}

std::string SummaryText(const AnalysisResult& result, const DomainNames& names,
                        const SummaryStyle& chosen) {
  SummaryStyle style = chosen;
  if (style.details || !IsWide(result)) style.pcpus = style.vcpus = true;
  std::string text = TraceText(result);
  const std::string whole = SectionText(TraceSection(result, names, style), result.metadata, style);
  if (!whole.empty()) text += '\n' + whole;
  if (style.vcpus) {
    const auto text_of = [&](const analysis::DomainSection& domain) {
      return DomainText(domain, names, result.metadata, style);
    };
    for (const std::string& each : OfEachDomain(result.document, text_of)) text += each;
  }
  return text + LeftOutText(result, style);
}

ordered_json SummaryJson(const AnalysisResult& result, const DomainNames& names) {
  ordered_json out;
  out["trace"] = JsonTrace(result);
  out["domains"] = OfEachDomain(result.document, [&names](const analysis::DomainSection& domain) {
    return DomainJson(domain, names);
  });
  return out;
}

std::string SummaryCsv(const analysis::Document& document) {
  Table table;
  for (const char* key : {"domain", "vcpu", "group", "name"}) {
    table.columns.push_back({key, key, ColumnUnit::kText, Shorten::kEnd});
  }
  for (const char* key : {"count", "cycles", "p5", "p50", "p95"}) {
    table.columns.push_back({key, key, ColumnUnit::kCount, Shorten::kEnd});
  }
  AddCsvSection("", "", document.trace, table);
  for (const analysis::DomainSection& domain : document.domains) {
    const std::string domid = std::to_string(domain.domain.value);
    AddCsvSection(domid, "", domain.section, table);
    for (const analysis::VcpuSection& vcpu : domain.vcpus) {
      AddCsvSection(domid, std::to_string(vcpu.vcpu.value), vcpu.section, table);
    }
  }
  // Rows that were made before a column was added are shorter.
  for (RowGroup& group : table.groups) {
    for (TableRow& row : group.rows) row.cells.resize(table.columns.size());
  }
  return ToCsv(table);
}

}  // namespace xenoscope::report
