#include "report/summary/summary_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "report/summary/skew_text.h"
#include "report/table/table.h"
#include "report/table/table_csv.h"
#include "report/terminal_text.h"

namespace xenoscope::report {
namespace {

using analysis::Figure;
using analysis::Result;
using nlohmann::ordered_json;

// ---- JSON

ordered_json JsonValue(const Figure& figure) {
  return std::visit([](const auto& value) { return ordered_json(value); }, figure.value);
}

ordered_json JsonRow(const analysis::Row& row) {
  ordered_json out = ordered_json::object();
  for (const Figure& figure : row.figures) out[figure.key] = JsonValue(figure);
  if (!row.parts.empty()) {
    ordered_json& parts = out["parts"] = ordered_json::object();
    for (const analysis::Row& part : row.parts) parts[part.name] = JsonRow(part);
  }
  return out;
}

// The groups of the section beside the fields of `fields`, of which none is lost: a group of the
// same name gets "_table" behind its own.
void AddSection(const analysis::Section& section, const ordered_json& fields, ordered_json& out) {
  for (const analysis::Group& group : section.groups) {
    const std::string key = fields.contains(group.key) ? group.key + "_table" : group.key;
    ordered_json& rows = out[key] = ordered_json::object();
    // Appended, as looking each name up would take the square of their number.
    auto& list = rows.get_ref<ordered_json::object_t&>();
    absl::flat_hash_set<std::string_view> names;
    for (const analysis::Row& row : group.rows) {
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
    return ordered_json{{"least", cycles.least}, {"most", cycles.most}};
  };
  out["ahead_at_first"] = range(skew.first);
  out["ahead_at_last"] = range(skew.last);
  return out;
}

ordered_json JsonTrace(const Result& result) {
  const analysis::TraceFigures& trace = result.trace;
  ordered_json out = {
      {"bytes", trace.bytes},
      {"records", trace.records},
      {"lost_records", trace.lost_records},
      {"pcpus", trace.pcpus},
      {"first_tsc", trace.first.value},
      {"last_tsc", trace.last.value},
      {"cpu_hz", result.facts.clock.hz},
      {"cpu_hz_source", ToString(result.facts.clock.source)},
      {"vendor", trace::ToString(result.facts.dialect.vendor)},
      {"vendor_source", trace::ToString(result.facts.dialect.vendor_source)},
      {"loss_marks", trace.loss_marks},
      {"unknown_events", trace.unknown_events},
      {"malformed_records", trace.malformed},
      {"first_malformed_offset", trace.first_malformed_offset},
      {"padding_records", trace.padding},
      {"damages", trace.damages},
      {"damaged_bytes", trace.damaged_bytes},
      {"runstate_mismatches", trace.faults.runstate_mismatches},
      {"first_mismatch_offset", trace.faults.first_mismatch_offset},
      {"exits_without_vcpu", trace.faults.exits_without_vcpu},
  };
  ordered_json& skews = out["clock_skews"] = ordered_json::array();
  for (const correlate::ClockSkew& skew : trace.skews) skews.push_back(JsonSkew(skew));
  ordered_json& unknown = out["unknown_by_event"] = ordered_json::object();
  for (const auto& [id, count] : trace.unknown_by_id) unknown[fmt::format("0x{:x}", id)] = count;
  AddSection(result.document.trace, ordered_json(out), out);
  return out;
}

// ---- text

Unit TableUnit(analysis::Unit unit) {
  switch (unit) {
    case analysis::Unit::kCount:
      return Unit::kCount;
    case analysis::Unit::kBytes:
      return Unit::kBytes;
    case analysis::Unit::kCycles:
      return Unit::kSeconds;
    case analysis::Unit::kFraction:
      return Unit::kShare;
    case analysis::Unit::kHex:
      return Unit::kHex;
    case analysis::Unit::kText:
      return Unit::kText;
  }
  return Unit::kText;
}

std::string Title(const std::string& key) {
  if (key == "cycles") return "time";
  if (key == "p5") return "5%";
  if (key == "p50") return "50%";
  if (key == "p95") return "95%";
  std::string title = key;
  std::replace(title.begin(), title.end(), '_', ' ');
  return title;
}

uint64_t Whole(const analysis::Row& row, std::string_view key) {
  for (const Figure& figure : row.figures) {
    const auto* value = std::get_if<uint64_t>(&figure.value);
    if (figure.key == key && value != nullptr) return *value;
  }
  return 0;
}

bool SameFigures(const std::vector<Figure>& a, const std::vector<Figure>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Figure& x, const Figure& y) {
    return x.key == y.key && x.value == y.value;
  });
}

bool Has(const analysis::Row& row, std::string_view key) {
  return std::any_of(row.figures.begin(), row.figures.end(),
                     [key](const Figure& figure) { return figure.key == key; });
}

// Whether one of the rows, or of their parts, has it.
bool AnyHas(const std::vector<analysis::Row>& rows, std::string_view key) {
  return std::any_of(rows.begin(), rows.end(), [key](const analysis::Row& row) {
    return Has(row, key) || AnyHas(row.parts, key);
  });
}

// One group as a table: a column for each key that its rows have, and with "cycles" the share of
// the trace's time and, where there is a count, the average.
class GroupTable {
 public:
  GroupTable(const analysis::Group& group, const analysis::Facts& facts)
      : facts_(&facts), counted_(AnyHas(group.rows, "count")) {
    table_.columns.push_back({"name", group.title, Unit::kText, Shorten::kMiddle});
    for (const analysis::Row& row : group.rows) AddColumns(row);
    for (const analysis::Row& row : group.rows) AddRow(row, 1);
  }
  const Table& table() const { return table_; }

 private:
  void AddColumns(const analysis::Row& row) {
    for (const Figure& figure : row.figures) {
      if (table_.Find(figure.key) != table_.columns.size()) continue;
      table_.columns.push_back(
          {figure.key, Title(figure.key), TableUnit(figure.unit), Shorten::kEnd});
      if (figure.key != "cycles") continue;
      table_.columns.push_back({"share", "share", Unit::kShare, Shorten::kEnd});
      if (!counted_) continue;
      table_.columns.push_back({"average", "average", Unit::kSeconds, Shorten::kEnd});
    }
    for (const analysis::Row& part : row.parts) AddColumns(part);
  }

  Cell CellOf(const Figure& figure) const {
    if (figure.unit == analysis::Unit::kCycles) {
      const auto* cycles = std::get_if<uint64_t>(&figure.value);
      if (cycles != nullptr) return facts_->clock.Seconds(*cycles);
    }
    return std::visit([](const auto& value) { return Cell(value); }, figure.value);
  }

  void AddRow(const analysis::Row& row, int indent) {
    std::vector<Cell> cells(table_.columns.size());
    // A single part that has the row's own figures adds only its name.
    const analysis::Row* last = &row;
    std::string name = row.name;
    while (last->parts.size() == 1 && !last->figures.empty() &&
           SameFigures(last->figures, last->parts[0].figures)) {
      last = &last->parts[0];
      name += ": " + last->name;
    }
    cells[0] = std::move(name);
    for (const Figure& figure : row.figures) cells[table_.Find(figure.key)] = CellOf(figure);
    const size_t share = table_.Find("share");
    if (share < cells.size() && !std::holds_alternative<std::monostate>(cells[share - 1])) {
      const uint64_t cycles = Whole(row, "cycles");
      const uint64_t count = Whole(row, "count");
      const Cycles all = facts_->range.Length();
      if (all > 0) cells[share] = static_cast<double>(cycles) / static_cast<double>(all);
      const size_t average = table_.Find("average");
      if (count > 0 && average < cells.size()) {
        cells[average] = facts_->clock.Seconds(cycles) / static_cast<double>(count);
      }
    }
    table_.AddRow(std::move(cells), indent);
    for (const analysis::Row& part : last->parts) AddRow(part, indent + 1);
  }

  const analysis::Facts* facts_;
  bool counted_;
  Table table_;
};

// What a remainder's rows tell, in one line: "not in the above: open at the end 1.2 ms; ...".
std::string RemainderText(const analysis::Group& group, const analysis::Facts& facts) {
  std::string text;
  for (const analysis::Row& row : group.rows) {
    const bool timed = Has(row, "cycles");
    const uint64_t count = Whole(row, "count");
    text += fmt::format("{}{} {}", text.empty() ? "  not in the above: " : "; ", row.name,
                        timed ? CellText(facts.clock.Seconds(Whole(row, "cycles")), Unit::kSeconds)
                              : CellText(count, Unit::kCount));
    if (timed && count > 1) text += fmt::format(" ({} times)", count);
  }
  return text + "\n";
}

// The first rows of a long list, and one for all others.
analysis::Group Shortened(const analysis::Group& group) {
  constexpr size_t kShown = 12;
  if (group.rows.size() <= kShown + 1) return group;
  analysis::Group shortened{group.key, group.title, {}, group.show};
  const auto first_hidden = group.rows.begin() + kShown;
  shortened.rows.assign(group.rows.begin(), first_hidden);
  uint64_t others = 0;
  for (auto row = first_hidden; row != group.rows.end(); ++row) others += Whole(*row, "count");
  shortened.rows.push_back(analysis::Row{"(others; --all shows more)", {}, {}}.Add(
      "count", analysis::Unit::kCount, others));
  return shortened;
}

std::string SectionText(const analysis::Section& section, const analysis::Facts& facts,
                        const SummaryStyle& style) {
  std::string text;
  for (const analysis::Group& group : section.groups) {
    if (group.rows.empty()) continue;
    if (group.show == analysis::Show::kRemainder) {
      text += RemainderText(group, facts);
      continue;
    }
    if (group.show == analysis::Show::kDetail && !style.details) continue;
    if (!text.empty()) text += '\n';
    const bool shorten = group.show == analysis::Show::kLongList && !style.details;
    text += ToText(GroupTable(shorten ? Shortened(group) : group, facts).table(), style.text);
  }
  return text;
}

std::string_view Plural(uint64_t count) { return count == 1 ? "" : "s"; }

std::string ContradictionText(const analysis::TraceFigures& trace, const analysis::Facts& facts) {
  const uint64_t count = trace.faults.runstate_mismatches;
  if (count == 0) return "";
  std::string text = fmt::format(
      "contradictory: {} runstate change{} from a state the vCPU was not in, the first at byte {}; "
      "{}\n",
      count, Plural(count), trace.faults.first_mismatch_offset,
      trace.skews.empty() ? "records are missing"
                          : "the clocks of pCPUs differ: wrong are runstates, waits, and all that "
                            "goes from one pCPU to another");
  for (const correlate::ClockSkew& skew : trace.skews) text += SkewText(skew, facts.clock);
  return text;
}

std::string TraceText(const Result& result) {
  const analysis::TraceFigures& trace = result.trace;
  const analysis::Facts& facts = result.facts;
  std::string text =
      fmt::format("{} of trace on {} pCPU{}: {} records, {} bytes\n",
                  CellText(facts.clock.Seconds(facts.range.Length()), Unit::kSeconds), trace.pcpus,
                  Plural(trace.pcpus), CellText(trace.records, Unit::kCount),
                  CellText(trace.bytes, Unit::kBytes));
  text += fmt::format("clock {:.6f} GHz ({}), vendor {} ({})\n",
                      static_cast<double>(facts.clock.hz) / 1e9, ToString(facts.clock.source),
                      trace::ToString(facts.dialect.vendor),
                      trace::ToString(facts.dialect.vendor_source));
  if (trace.lost_records > 0) {
    text +=
        fmt::format("lost: {} records at {} place{}\n", CellText(trace.lost_records, Unit::kCount),
                    trace.loss_marks, Plural(trace.loss_marks));
  }
  if (trace.unknown_events > 0) {
    text += fmt::format("unknown: {} records of events that this version does not know (",
                        trace.unknown_events);
    bool first = true;
    for (const auto& [id, count] : trace.unknown_by_id) {
      text += fmt::format("{}0x{:x}: {}", first ? "" : ", ", id, count);
      first = false;
    }
    if (trace.unknown_by_id.size() == analysis::TraceFigures::kUnknownKept) text += ", ...";
    text += ")\n";
  }
  if (trace.malformed > 0) {
    text += fmt::format(
        "malformed: {} record{} with a number of words, or of a vCPU, that no Xen has; the first "
        "at "
        "byte {}\n",
        trace.malformed, Plural(trace.malformed), trace.first_malformed_offset);
  }
  if (trace.damages > 0) {
    text += fmt::format("damaged: {} place{}, {} bytes passed over\n", trace.damages,
                        Plural(trace.damages), trace.damaged_bytes);
    for (const trace::Damage& damage : trace.first_damages) {
      text += fmt::format("  byte {}: {} ({} bytes)\n", damage.offset, trace::ToString(damage.kind),
                          damage.bytes);
    }
    if (trace.damages > trace.first_damages.size()) {
      text += fmt::format("  and {} more\n", trace.damages - trace.first_damages.size());
    }
  }
  return text + ContradictionText(trace, facts);
}

std::string Heading(const std::string& text, const TextStyle& style) {
  return fmt::format("\n{}\n", style.colour ? Styled(text, kBold) : text);
}

// ---- CSV

void AddCsvRow(const std::string& domain, const std::string& vcpu, const std::string& group,
               const std::string& path, const analysis::Row& row, Table& table) {
  const std::string name = path.empty() ? row.name : path + "/" + row.name;
  std::vector<Cell> cells(table.columns.size());
  cells[0] = domain;
  cells[1] = vcpu;
  cells[2] = group;
  cells[3] = name;
  for (const Figure& figure : row.figures) {
    size_t column = table.Find(figure.key);
    if (column == table.columns.size()) {
      table.columns.push_back({figure.key, figure.key, TableUnit(figure.unit), Shorten::kEnd});
      if (figure.unit == analysis::Unit::kCycles) table.columns.back().unit = Unit::kCount;
      cells.emplace_back();
    }
    cells[column] = std::visit([](const auto& value) { return Cell(value); }, figure.value);
  }
  table.AddRow(std::move(cells));
  for (const analysis::Row& part : row.parts) AddCsvRow(domain, vcpu, group, name, part, table);
}

void AddCsvSection(const std::string& domain, const std::string& vcpu,
                   const analysis::Section& section, Table& table) {
  for (const analysis::Group& group : section.groups) {
    for (const analysis::Row& row : group.rows) {
      AddCsvRow(domain, vcpu, group.key, "", row, table);
    }
  }
}

}  // namespace

void Select(const SummarySelection& selection, analysis::Document& document) {
  const auto wanted = [&](const analysis::Section& section) {
    return std::any_of(section.groups.begin(), section.groups.end(),
                       [](const analysis::Group& group) { return !group.rows.empty(); });
  };
  const auto reduce = [&](analysis::Section& section) {
    if (selection.sections.empty()) return;
    std::erase_if(section.groups, [&](const analysis::Group& group) {
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

std::string SummaryText(const Result& result, const DomainNames& names, const SummaryStyle& style) {
  std::string text = TraceText(result);
  const std::string whole = SectionText(result.document.trace, result.facts, style);
  if (!whole.empty()) text += '\n' + whole;
  for (const analysis::DomainSection& domain : result.document.domains) {
    const std::string name = names(domain.domain);
    text += Heading(fmt::format("Domain {}{}", ToString(domain.domain),
                                name.empty() ? "" : fmt::format(" ({})", name)),
                    style.text);
    text += SectionText(domain.section, result.facts, style);
    for (const analysis::VcpuSection& vcpu : domain.vcpus) {
      const std::string inner = SectionText(vcpu.section, result.facts, style);
      if (inner.empty()) continue;
      text += Heading(ToString(VcpuRef{domain.domain, vcpu.vcpu}), style.text);
      text += inner;
    }
  }
  return text;
}

// Of what kind the vCPU is, scripts need not ask: these are there, if empty.
constexpr const char* kKeysOfEveryVcpu[] = {"runstates",  "runnable", "exits",
                                            "hypercalls", "traps",    "pv"};

ordered_json SummaryJson(const Result& result, const DomainNames& names) {
  ordered_json out;
  out["trace"] = JsonTrace(result);
  ordered_json& domains = out["domains"] = ordered_json::array();
  for (const analysis::DomainSection& domain : result.document.domains) {
    ordered_json entry = {{"domid", domain.domain.value}, {"name", names(domain.domain)}};
    AddSection(domain.section, {{"domid", 0}, {"name", ""}, {"vcpus", {}}}, entry);
    ordered_json& vcpus = entry["vcpus"] = ordered_json::array();
    for (const analysis::VcpuSection& vcpu : domain.vcpus) {
      ordered_json inner = {{"vcpu", vcpu.vcpu.value}};
      for (const char* key : kKeysOfEveryVcpu) inner[key] = ordered_json::object();
      AddSection(vcpu.section, {{"vcpu", 0}}, inner);
      vcpus.push_back(std::move(inner));
    }
    domains.push_back(std::move(entry));
  }
  return out;
}

std::string SummaryCsv(const Result& result) {
  Table table;
  for (const char* key : {"domain", "vcpu", "group", "name"}) {
    table.columns.push_back({key, key, Unit::kText, Shorten::kEnd});
  }
  for (const char* key : {"count", "cycles", "p5", "p50", "p95"}) {
    table.columns.push_back({key, key, Unit::kCount, Shorten::kEnd});
  }
  AddCsvSection("", "", result.document.trace, table);
  for (const analysis::DomainSection& domain : result.document.domains) {
    const std::string domid = std::to_string(domain.domain.value);
    AddCsvSection(domid, "", domain.section, table);
    for (const analysis::VcpuSection& vcpu : domain.vcpus) {
      AddCsvSection(domid, std::to_string(vcpu.vcpu.value), vcpu.section, table);
    }
  }
  // Rows made before a column was met are shorter.
  for (Group& group : table.groups) {
    for (Row& row : group.rows) row.cells.resize(table.columns.size());
  }
  return ToCsv(table);
}

}  // namespace xenoscope::report
