#include "report/stat/stat_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "report/table/table.h"
#include "report/table/table_csv.h"
#include "report/table/table_json.h"

namespace xenoscope::report {
namespace {

using profile::EventTotal;
using profile::TotalKind;
using profile::TotalsBy;

// Whether rows are of domains. Without Xen, what would be vCPUs are the CPUs of Linux.
bool HasDomains(const StatReport& report) {
  return std::ranges::any_of(report.totals.totals,
                             [](const EventTotal& total) { return total.domain.has_value(); });
}

void AddColumns(const StatReport& report, Reader reader, Table& table) {
  std::vector<Column>& columns = table.columns;
  if (report.time) columns.push_back({"time", "time", ColumnUnit::kSeconds, Shorten::kEnd});
  if (HasDomains(report)) columns.push_back({"domain", "domain"});
  if (report.by == TotalsBy::kVcpu) {
    const std::string key = HasDomains(report) ? "vcpu" : "cpu";
    columns.push_back({key, key, ColumnUnit::kCount, Shorten::kEnd});
  }
  if (report.by == TotalsBy::kPcpu) {
    columns.push_back({"pcpu", "pcpu", ColumnUnit::kCount, Shorten::kEnd});
  }
  const ColumnUnit rate = reader == Reader::kPeople ? ColumnUnit::kCycles : ColumnUnit::kRatio;
  columns.insert(columns.end(), {{"count", "count", ColumnUnit::kCount, Shorten::kEnd},
                                 {"low", "low", ColumnUnit::kCount, Shorten::kEnd},
                                 {"high", "high", ColumnUnit::kCount, Shorten::kEnd},
                                 {"per_second", "per second", rate, Shorten::kEnd},
                                 {"unit", "unit"},
                                 {"event", "event"},
                                 {"kind", "kind"},
                                 {"measured", "measured", ColumnUnit::kShare, Shorten::kEnd},
                                 {"ratio", "ratio", ColumnUnit::kRatio, Shorten::kEnd},
                                 {"ratio_low", "low", ColumnUnit::kRatio, Shorten::kEnd},
                                 {"ratio_high", "high", ColumnUnit::kRatio, Shorten::kEnd},
                                 {"ratio_of", "of"}});
}

Cell Whole(double count) { return static_cast<uint64_t>(std::llround(count)); }

// Returns the figures of a total, in the order of the columns from `count`.
std::vector<Cell> Figures(const StatReport& report, const EventTotal& total) {
  const profile::TotalEvent& event = report.totals.events[total.event];
  const bool counted = total.kind != TotalKind::kNotCounted;
  const bool estimated = total.kind == TotalKind::kEstimated;
  const double seconds = event.seconds > 0 ? event.seconds : report.totals.seconds;
  std::vector<Cell> cells = {
      counted ? Whole(total.count) : Cell(),
      total.has_interval ? Whole(total.low) : Cell(),
      total.has_interval ? Whole(total.high) : Cell(),
      counted && seconds > 0 ? Cell(total.count / seconds) : Cell(),
      std::string(event.is_time ? "ns" : "events"),
      event.name,
      std::string(ToString(total.kind)),
      total.kind == TotalKind::kScaled ? Cell(total.measured) : Cell(),
  };
  if (!total.ratio_column) {
    cells.resize(cells.size() + 4);
    return cells;
  }
  const auto end = [](const std::optional<double>& value) { return value ? Cell(*value) : Cell(); };
  cells.push_back(end(total.ratio.value));
  cells.push_back(estimated && total.ratio.value ? Cell(total.ratio.low) : Cell());
  cells.push_back(estimated ? end(total.ratio.high) : Cell());
  cells.emplace_back(report.totals.ratios[*total.ratio_column].about);
  return cells;
}

Table MakeTable(const StatReport& report, Reader reader) {
  Table table;
  AddColumns(report, reader, table);
  for (const EventTotal& total : report.totals.totals) {
    std::vector<Cell> cells;
    if (report.time) cells.emplace_back(*report.time);
    if (HasDomains(report)) {
      cells.push_back(total.domain
                          ? Cell(DomainLabel(*total.domain, report.domain_name(*total.domain)))
                          : Cell());
    }
    if (report.by == TotalsBy::kVcpu) {
      cells.push_back(total.vcpu ? Cell(uint64_t{total.vcpu->value}) : Cell());
    }
    if (report.by == TotalsBy::kPcpu) {
      cells.push_back(total.pcpu ? Cell(uint64_t{total.pcpu->value}) : Cell());
    }
    std::ranges::move(Figures(report, total), std::back_inserter(cells));
    table.AddRow(std::move(cells));
  }
  return table;
}

// Removes columns in which no row has a value.
void RemoveEmptyColumns(Table& table) {
  for (size_t column = table.columns.size(); column-- > 0;) {
    bool is_empty = true;
    for (const RowGroup& group : table.groups) {
      for (const TableRow& row : group.rows) {
        is_empty = is_empty && std::holds_alternative<std::monostate>(row.cells[column]);
      }
    }
    if (!is_empty) continue;
    const auto at = static_cast<std::ptrdiff_t>(column);
    table.columns.erase(table.columns.begin() + at);
    for (RowGroup& group : table.groups) {
      for (TableRow& row : group.rows) row.cells.erase(row.cells.begin() + at);
    }
  }
}

std::string_view Explain(TotalKind kind) {
  switch (kind) {
    case TotalKind::kExact:
      return "read from counters that counted all of the time";
    case TotalKind::kScaled:
      return "events took turns: counts of a part of the time (measured), divided by that part";
    case TotalKind::kEstimated:
      return "samples times the period; low, high: 95 % interval";
    case TotalKind::kNotCounted:
      break;
  }
  return "this machine cannot count it, or it had no turn";
}

}  // namespace

Table StatTable(const StatReport& report) { return MakeTable(report, Reader::kPeople); }

std::string StatText(const StatReport& report, const TextStyle& style) {
  Table table = StatTable(report);
  RemoveEmptyColumns(table);
  if (report.time) return ToText(table, style);
  std::string out = fmt::format("{} in {}\n", report.subject,
                                CellText(report.totals.seconds, ColumnUnit::kSeconds));
  if (report.runs > 1) {
    out += fmt::format("means of {} runs; low, high: 95 % interval of the mean\n", report.runs);
  }
  out += "\n";
  out += ToText(table, style) + "\n";
  std::set<TotalKind> kinds;
  for (const EventTotal& total : report.totals.totals) kinds.insert(total.kind);
  for (const TotalKind kind : kinds) {
    out += fmt::format("{}: {}\n", ToString(kind), Explain(kind));
  }
  for (const std::string& caution : report.totals.cautions) {
    out += fmt::format("note: {}\n", caution);
  }
  return out;
}

std::string StatCsv(const StatReport& report, bool with_titles) {
  const std::string csv = ToCsv(MakeTable(report, Reader::kProgram));
  return with_titles ? csv : csv.substr(csv.find('\n') + 1);
}

nlohmann::ordered_json StatJson(const StatReport& report) {
  nlohmann::ordered_json json = {
      {"subject", report.subject}, {"runs", report.runs}, {"seconds", report.totals.seconds}};
  if (report.time) json["time"] = *report.time;
  json["cautions"] = report.totals.cautions;
  json["rows"] = ToJson(MakeTable(report, Reader::kProgram));
  return json;
}

}  // namespace xenoscope::report
