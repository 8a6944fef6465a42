#include "report/profile/explain_view.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>

#include "report/table/table.h"

namespace xenoscope::report {
namespace {

using correlate::Dimension;
using correlate::Interval;
using correlate::Placement;
using correlate::ProfileRow;
using correlate::RowPart;
using nlohmann::ordered_json;

// Advice is given if it would narrow an interval by more than this factor.
constexpr double kWorthwhile = 1.1;
// Strata with smaller parts of both cycles and variance are summed up in one row.
constexpr double kWorthShowing = 0.005;

double HalfWidth(const Interval& interval) { return (interval.high - interval.low) / 2; }

// The row's samples by placement.
std::array<double, correlate::kPlacements> PlacedOf(const ProfileReport& report,
                                                    const ProfileRow& row) {
  std::array<double, correlate::kPlacements> placed{};
  for (const ProfileRow& part : report.further.front().rows) {
    if (part.domain != row.domain || part.mode != row.mode || part.image != row.image ||
        part.function != row.function) {
      continue;
    }
    placed.at(static_cast<size_t>(part.placing)) += part.samples;
  }
  return placed;
}

double BracketSeconds(const ProfileReport& report, DomainId domain) {
  const auto check =
      std::ranges::find(report.placing_checks, domain, &correlate::PlacingCheck::domain);
  if (check == report.placing_checks.end() || report.clock.hz == 0) return 0;
  return check->bracket / static_cast<double>(report.clock.hz);
}

// The cycles of a part of the row.
double CyclesOf(const RowPart& part) {
  return part.stratum_samples > 0 ? part.stratum_cycles * part.samples / part.stratum_samples : 0;
}

std::vector<const RowPart*> LargestFirst(const ProfileRow& row) {
  std::vector<const RowPart*> parts;
  for (const RowPart& part : row.parts) parts.push_back(&part);
  std::ranges::stable_sort(parts, std::ranges::greater(),
                           [](const RowPart* part) { return CyclesOf(*part); });
  return parts;
}

double VariancePart(const ProfileRow& row, const RowPart& part) {
  return row.variance > 0 ? part.variance / row.variance : 0;
}

Table StrataTable(const ProfileReport& report, const ProfileRow& row) {
  Table table;
  table.columns = {{"cycles", "cycles", ColumnUnit::kCycles},
                   {"part", "part", ColumnUnit::kShare},
                   {"stratum_cycles", "all cycles", ColumnUnit::kCycles},
                   {"samples", "samples", ColumnUnit::kCount},
                   {"stratum_samples", "all samples", ColumnUnit::kCount},
                   {"variance", "variance", ColumnUnit::kShare},
                   {"stratum", "stratum", ColumnUnit::kText}};
  double cycles = 0;
  for (const RowPart& part : row.parts) cycles += CyclesOf(part);
  const auto of_all = [cycles](double part) { return cycles > 0 ? std::abs(part) / cycles : 0; };
  RowPart rest;
  double rest_cycles = 0;
  size_t left_out = 0;
  for (const RowPart* part : LargestFirst(row)) {
    if (of_all(CyclesOf(*part)) < kWorthShowing && VariancePart(row, *part) < kWorthShowing) {
      rest.samples += part->samples;
      rest.variance += part->variance;
      rest_cycles += CyclesOf(*part);
      ++left_out;
      continue;
    }
    table.AddRow(
        {CyclesOf(*part), part->stratum_samples > 0 ? part->samples / part->stratum_samples : 0,
         part->stratum_cycles, part->samples, part->stratum_samples, VariancePart(row, *part),
         fmt::format("{} {}", ToString(part->vcpu), ContextName(report, part->context))});
  }
  if (left_out > 0) {
    table.AddRow({rest_cycles,
                  {},
                  {},
                  rest.samples,
                  {},
                  VariancePart(row, rest),
                  fmt::format("{} {}", left_out, left_out == 1 ? "other" : "others")});
  }
  // Sizes of strata that samples estimate (method.md §4.2 and §4.3).
  double of_parts = 0;
  for (const RowPart& part : row.parts) of_parts += VariancePart(row, part);
  if (row.variance > 0 && 1 - of_parts >= kWorthShowing) {
    table.AddRow({{}, {}, {}, {}, {}, 1 - of_parts, "sizes of transitions and lost time"});
  }
  return table;
}

// Returns ways to narrow the row's interval, one sentence each.
std::vector<std::string> Advice(const ProfileReport& report, const ProfileRow& row,
                                const std::array<double, correlate::kPlacements>& placed) {
  const double now = HalfWidth(row.interval);
  if (row.variance <= 0 || now <= 0) return {"nothing: the trace contains the exact figure"};
  const IntervalForecast forecast = IntervalForecastOf(row);
  std::vector<std::string> advice;
  std::string more = fmt::format("{:.0f} times the samples: ±{}", IntervalForecast::kMoreSamples,
                                 Percent(HalfWidth(forecast.with_more)));
  if (!report.sampled.Empty()) {
    more +=
        fmt::format(" ({:.0f} s at this rate)",
                    IntervalForecast::kMoreSamples * report.clock.Seconds(report.sampled.Length()));
  }
  advice.push_back(more);
  const double known = HalfWidth(forecast.places_known);
  if (known * kWorthwhile > now) return advice;
  const double open = placed.at(static_cast<size_t>(Placement::kBracketed)) +
                      placed.at(static_cast<size_t>(Placement::kAtExit));
  const auto strata = static_cast<double>(row.parts.size());
  if (open > 0 && strata > 1) {
    advice.push_back(fmt::format(
        "exact times of the {} estimated samples: ±{} at best. Record with a --drain-interval "
        "below {}, or with --source vcpu or perf, which know the time of each sample "
        "(docs/sources.md)",
        CellText(open, ColumnUnit::kCount), Percent(known),
        CellText(BracketSeconds(report, row.domain), ColumnUnit::kSeconds)));
  } else {
    advice.push_back(fmt::format(
        "independent samples: ±{} at best. Samples of one timeslice resemble each other, so these "
        "are worth {:.0f} independent ones. Record for longer, not more often",
        Percent(known), forecast.independent_samples));
  }
  return advice;
}

std::string RowName(const ProfileReport& report, const ProfileRow& row) {
  return fmt::format("{}{}, {}, {} mode", row.function,
                     row.image.empty() ? "" : fmt::format(" in {}", row.image),
                     DomainTitle(row.domain, report.domain_name(row.domain)), ToString(row.mode));
}

}  // namespace

std::vector<Dimension> ExplainColumns() {
  return {Dimension::kDomain, Dimension::kMode, Dimension::kImage, Dimension::kFunction};
}

std::vector<Dimension> ExplainSecondaryColumns() {
  std::vector<Dimension> columns = ExplainColumns();
  columns.push_back(Dimension::kPlacing);
  return columns;
}

IntervalForecast IntervalForecastOf(const ProfileRow& row) {
  IntervalForecast forecast;
  const double spread = row.share * (1 - row.share);
  if (row.variance > 0) forecast.independent_samples = spread / row.variance;
  forecast.with_more =
      correlate::IntervalOf(row.share, row.variance / IntervalForecast::kMoreSamples,
                            row.samples * IntervalForecast::kMoreSamples);
  // The variance that independent samples, each in one stratum, would have.
  double sum = 0;
  double cycles = 0;
  for (const RowPart& part : row.parts) cycles += CyclesOf(part);
  for (const RowPart& part : row.parts) {
    if (part.stratum_samples <= 0 || cycles <= 0) continue;
    const double p = std::clamp(part.samples / part.stratum_samples, 0.0, 1.0);
    const double of_all = row.share * part.stratum_cycles / cycles;
    sum += std::min(part.variance, of_all * of_all * p * (1 - p) / part.stratum_samples);
  }
  forecast.places_known = correlate::IntervalOf(row.share, sum, row.samples);
  return forecast;
}

std::vector<const ProfileRow*> ExplainedRows(const ProfileReport& report,
                                             const ExplainSelection& selection) {
  std::vector<const ProfileRow*> rows;
  ProfileSelection of_domains;
  of_domains.domains = selection.domains;
  for (const ProfileRow* row : SelectedRows(report, of_domains)) {
    const bool named = row->function == selection.function ||
                       fnmatch(selection.function.c_str(), row->function.c_str(), 0) == 0;
    if (named) rows.push_back(row);
  }
  return rows;
}

std::string ExplainText(const ProfileReport& report, const ExplainSelection& selection,
                        const TextStyle& style) {
  std::string out;
  for (const ProfileRow* row : ExplainedRows(report, selection)) {
    const auto placed = PlacedOf(report, *row);
    out += fmt::format("{}{}\n", out.empty() ? "" : "\n", RowName(report, *row));
    out += fmt::format("  {} of all time, {} to {} (95 % interval); {} samples of {}\n",
                       Percent(row->share), Percent(row->interval.low), Percent(row->interval.high),
                       CellText(row->samples, ColumnUnit::kCount), report.event);
    out += "  times of the samples:\n";
    for (size_t i = 0; i < placed.size(); ++i) {
      if (placed.at(i) <= 0) continue;
      const auto placing = static_cast<Placement>(i);
      out += fmt::format("    {} {}", CellText(placed.at(i), ColumnUnit::kCount),
                         PlacementDescription(placing));
      if (placing == Placement::kClocked) out += ClockErrorText(report, row->domain);
      if (placing == Placement::kBracketed) {
        out += fmt::format(" (mean of the domain: {})",
                           CellText(BracketSeconds(report, row->domain), ColumnUnit::kSeconds));
      }
      out += '\n';
    }
    out += "  cycles by stratum (a vCPU in one state), and their parts of the row's variance:\n";
    out += ToText(StrataTable(report, *row), style);
    out += fmt::format("  the interval, now ±{}, would be narrower with:\n",
                       Percent(HalfWidth(row->interval)));
    for (const std::string& line : Advice(report, *row, placed)) {
      out += fmt::format("    {}\n", line);
    }
  }
  return out;
}

ordered_json ExplainJson(const ProfileReport& report, const ExplainSelection& selection) {
  ordered_json rows = ordered_json::array();
  for (const ProfileRow* row : ExplainedRows(report, selection)) {
    const auto placed = PlacedOf(report, *row);
    ordered_json placements = ordered_json::object();
    for (size_t i = 0; i < placed.size(); ++i) {
      placements[ToString(static_cast<Placement>(i))] = std::llround(placed.at(i));
    }
    ordered_json strata = ordered_json::array();
    for (const RowPart* part : LargestFirst(*row)) {
      strata.push_back({{"vcpu", ToString(part->vcpu)},
                        {"exit", ContextName(report, part->context)},
                        {"samples", part->samples},
                        {"stratum_samples", part->stratum_samples},
                        {"clusters", part->clusters},
                        {"cycles", std::llround(CyclesOf(*part))},
                        {"stratum_cycles", std::llround(part->stratum_cycles)},
                        {"of_variance", VariancePart(*row, *part)}});
    }
    const IntervalForecast forecast = IntervalForecastOf(*row);
    rows.push_back(
        {{"domain", DomainLabel(report, row->domain)},
         {"domid", row->domain.value},
         {"mode", std::string(ToString(row->mode))},
         {"image", row->image},
         {"function", row->function},
         {"samples", row->samples},
         {"share", row->share},
         {"low", row->interval.low},
         {"high", row->interval.high},
         {"independent_samples", forecast.independent_samples},
         {"placements", std::move(placements)},
         {"bracket_seconds", BracketSeconds(report, row->domain)},
         {"strata", std::move(strata)},
         {"narrower",
          {{"with_4_times_the_samples",
            {{"low", forecast.with_more.low}, {"high", forecast.with_more.high}}},
           {"places_known",
            {{"low", forecast.places_known.low}, {"high", forecast.places_known.high}}}}},
         {"advice", Advice(report, *row, placed)}});
  }
  return {{"function", selection.function}, {"event", report.event}, {"rows", std::move(rows)}};
}

}  // namespace xenoscope::report
