#include "report/profile/profile_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "profile/event_comparison.h"
#include "profile/pipeline_options.h"

namespace xenoscope::report {
namespace {

using correlate::ProfileRow;

// Returns the columns of totals. Their samples and cycles are for programs.
std::vector<Column> TotalColumns(Reader reader) {
  std::vector<Column> columns = {
      {"total_share", "total", ColumnUnit::kShare, Shorten::kEnd},
      {"total_low", "low", ColumnUnit::kShare, Shorten::kEnd, Narrow::kFold},
      {"total_high", "high", ColumnUnit::kShare, Shorten::kEnd}};
  if (reader == Reader::kProgram) {
    columns.push_back({"total_samples", "total_samples", ColumnUnit::kCount, Shorten::kEnd});
    columns.push_back({"total_cycles", "total_cycles", ColumnUnit::kCycles, Shorten::kEnd});
  }
  return columns;
}

// Adds a cell with the value, or an empty one.
void AddCell(const std::optional<double>& value, std::vector<Cell>& cells) {
  if (value) {
    cells.emplace_back(*value);
  } else {
    cells.emplace_back();
  }
}

std::optional<double> CyclesOf(const ProfileReport& report, double cycles) {
  return report.is_time ? std::optional(cycles) : std::nullopt;
}

// Adds the totals of the row. Those of a row without functions, such as a domain's, are its own.
void AddTotals(const ProfileReport& report, const ProfileRow& row, Reader reader,
               std::vector<Cell>& cells) {
  const correlate::RowTotal total =
      row.total.value_or(correlate::RowTotal{row.samples, row.share, row.interval, row.cycles});
  cells.emplace_back(total.share);
  cells.emplace_back(total.interval.low);
  cells.emplace_back(total.interval.high);
  if (reader == Reader::kPeople) return;
  cells.emplace_back(total.samples);
  AddCell(CyclesOf(report, total.cycles), cells);
}

// Whether rows of exits have the number of exits and what one of them costs.
bool HasExitColumns(const ProfileReport& report) {
  return !report.exit_counts.empty() && profile::HasExitCounts(report.by) &&
         (report.is_time || report.period > 0);
}

// Whether they have the interval of that: the trace measures the time of exits, which needs none.
bool HasExitIntervals(const ProfileReport& report, Reader reader) {
  return reader == Reader::kProgram || !report.is_time;
}

// Returns how many exits the row is of; 0: it is of none.
uint64_t ExitsInRow(const ProfileReport& report, const ProfileRow& row) {
  const bool by_vcpu = profile::HasDimension(report.by, correlate::Dimension::kVcpu);
  std::span<const profile::ExitCount> counts = report.exit_counts;
  if (profile::HasDimension(report.by, correlate::Dimension::kDomain)) {
    const auto domain_of = [](const profile::ExitCount& each) { return each.vcpu.domain; };
    counts = {std::ranges::lower_bound(counts, row.domain, {}, domain_of),
              std::ranges::upper_bound(counts, row.domain, {}, domain_of)};
  }
  uint64_t exits = 0;
  for (const profile::ExitCount& each : counts) {
    if (each.exit == row.exit && (!by_vcpu || each.vcpu.vcpu == row.vcpu)) exits += each.count;
  }
  return exits;
}

// Adds the number of exits of the row, and the counts of the event in one of them, with their
// interval, which is that of the share.
void AddExits(const ProfileReport& report, const ProfileRow& row, Reader reader,
              std::vector<Cell>& cells) {
  const bool has_interval = HasExitIntervals(report, reader);
  const uint64_t exits = ExitsInRow(report, row);
  if (exits == 0) {
    cells.resize(cells.size() + (has_interval ? 4 : 2));
    return;
  }
  const double all = report.is_time ? row.cycles : row.samples * report.period;
  const double each = all / static_cast<double>(exits);
  cells.emplace_back(exits);
  cells.emplace_back(each);
  if (!has_interval) return;
  const bool is_exact = row.share <= 0 || row.interval.low == row.interval.high;
  AddCell(is_exact ? std::nullopt : std::optional(each * row.interval.low / row.share), cells);
  AddCell(is_exact ? std::nullopt : std::optional(each * row.interval.high / row.share), cells);
}

}  // namespace

std::vector<Column> FigureColumns(const ProfileReport& report, Reader reader) {
  std::vector<Column> columns;
  const bool has_totals = report.result.has_totals;
  if (has_totals) columns = TotalColumns(reader);
  const std::vector<Column> own = {
      {"samples", "samples", ColumnUnit::kCount, Shorten::kEnd},
      {"share", has_totals ? "self" : "share", ColumnUnit::kShare, Shorten::kEnd},
      {"low", "low", ColumnUnit::kShare, Shorten::kEnd, Narrow::kFold},
      {"high", "high", ColumnUnit::kShare, Shorten::kEnd},
      {"cycles", "cycles", ColumnUnit::kCycles, Shorten::kEnd, Narrow::kDrop}};
  columns.insert(columns.end(), own.begin(), own.end());
  const profile::EventComparison& comparison = report.comparison;
  for (size_t i = 1; i < comparison.events.size(); ++i) {
    const profile::ComparedEvent& event = comparison.events[i];
    columns.push_back({event.key + "_share", event.title, ColumnUnit::kShare, Shorten::kEnd});
  }
  for (const profile::RatioColumn& ratio : comparison.ratios) {
    const ColumnUnit unit = ratio.is_share ? ColumnUnit::kShare : ColumnUnit::kRatio;
    columns.push_back({ratio.key, ratio.title, unit, Shorten::kEnd});
    columns.push_back({ratio.key + "_low", "low", unit, Shorten::kEnd, Narrow::kFold});
    columns.push_back({ratio.key + "_high", "high", unit, Shorten::kEnd});
  }
  if (HasExitColumns(report)) {
    columns.push_back({"exits", "exits", ColumnUnit::kCount, Shorten::kEnd});
    columns.push_back({"per_exit", "per exit", ColumnUnit::kCycles, Shorten::kEnd});
  }
  if (HasExitColumns(report) && HasExitIntervals(report, reader)) {
    columns.push_back({"per_exit_low", "low", ColumnUnit::kCycles, Shorten::kEnd, Narrow::kFold});
    columns.push_back({"per_exit_high", "high", ColumnUnit::kCycles, Shorten::kEnd});
  }
  return columns;
}

void AddFigureColumns(const ProfileReport& report, Reader reader, Table& table) {
  std::ranges::move(FigureColumns(report, reader), std::back_inserter(table.columns));
}

void AddRatios(const std::vector<correlate::RatioEstimate>& ratios, std::vector<Cell>& cells) {
  for (const correlate::RatioEstimate& ratio : ratios) {
    AddCell(ratio.value, cells);
    AddCell(ratio.value ? std::optional(ratio.low) : std::nullopt, cells);
    AddCell(ratio.high, cells);
  }
}

void AddFigures(const ProfileReport& report, const ProfileRow& row, Reader reader,
                std::vector<Cell>& cells) {
  if (report.result.has_totals) AddTotals(report, row, reader, cells);
  cells.emplace_back(row.samples);
  cells.emplace_back(row.share);
  cells.emplace_back(row.interval.low);
  cells.emplace_back(row.interval.high);
  AddCell(CyclesOf(report, row.cycles), cells);
  for (size_t i = 1; i < row.event_samples.size(); ++i) {
    const double all = report.result.event_samples[i];
    AddCell(all > 0 ? std::optional(row.event_samples[i] / all) : std::nullopt, cells);
  }
  AddRatios(row.ratios, cells);
  if (HasExitColumns(report)) AddExits(report, row, reader, cells);
}

void NameTraced(const ProfileReport& report, const Table& table, const ProfileRow& row,
                std::vector<Cell>& cells) {
  if (!report.traced) return;
  const auto name = [&](std::string_view key, double share, const correlate::Interval& interval) {
    if (share <= 0 || interval.low != interval.high) return;
    const size_t low = table.Find(std::string(key));
    cells[low] = std::string("traced");
    cells[low + 1] = Cell();
  };
  name("low", row.share, row.interval);
  if (!report.result.has_totals) return;
  if (row.total) {
    name("total_low", row.total->share, row.total->interval);
  } else {
    name("total_low", row.share, row.interval);
  }
}

double LargestShare(const ProfileRow& row) { return row.total ? row.total->share : row.share; }

FigureSum::FigureSum(const ProfileReport& report, const Table& table)
    : cells_(table.columns.size()) {
  std::vector<std::string> keys = {"samples", "share", "cycles"};
  for (const profile::ComparedEvent& event : report.comparison.events) {
    keys.push_back(event.key + "_share");
  }
  for (const std::string& key : keys) {
    const size_t column = table.Find(key);
    if (column < table.columns.size()) columns_.push_back(column);
  }
}

void FigureSum::Add(const std::vector<Cell>& cells) {
  ++rows_;
  for (const size_t column : columns_) {
    if (std::holds_alternative<std::monostate>(cells[column])) continue;
    cells_[column] = Number(cells_[column]) + Number(cells[column]);
  }
}

std::vector<Cell> FigureSum::RowOf(size_t name_at) {
  cells_[name_at] = fmt::format("({} more; --limit 0)", rows_);
  return std::move(cells_);
}

void LimitDomains(const ProfileReport& report, const ProfileSelection& selection, size_t name_at,
                  Table& table) {
  if (selection.limit == 0 || !selection.domains.empty()) return;
  if (table.groups.size() <= kMostDomains + 1) return;
  FigureSum others(report, table);
  for (const RowGroup& group : std::span(table.groups).subspan(kMostDomains)) {
    others.Add(group.heading);
  }
  table.groups.resize(kMostDomains);
  table.groups.push_back({others.RowOf(name_at), {}, 0});
}

}  // namespace xenoscope::report
