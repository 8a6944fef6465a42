#include "report/profile/diff_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "report/markup.h"
#include "report/profile/row_words.h"
#include "report/table/table.h"
#include "report/table/table_csv.h"
#include "report/table/table_json.h"

namespace xenoscope::report {
namespace {

using correlate::Dimension;
using correlate::Estimated;
using correlate::ProfileRow;
using nlohmann::ordered_json;

// Corrected p-values below this are marked.
constexpr double kTestLevel = 0.05;

// The factor that turns shares into the compared figure.
double ScaleOf(const ProfileReport& report, DiffBasis of, double work) {
  if (of == DiffBasis::kShare) return 1;
  if (of == DiffBasis::kWork) return report.result.cycles / work;
  const auto length = static_cast<double>(report.sampled.Length());
  return length > 0 ? report.result.cycles / length : 0;
}

Estimated Scaled(Estimated share, double scale) {
  return {share.value * scale, share.variance * scale * scale};
}

std::vector<const DiffRow*> Selected(const Diff& diff, const DiffSelection& selection) {
  std::vector<const DiffRow*> rows;
  for (const DiffRow& row : diff.rows) {
    if (row.Largest() < selection.threshold * diff.whole) continue;
    if (selection.limit != 0 && rows.size() == selection.limit) break;
    rows.push_back(&row);
  }
  return rows;
}

std::string_view Note(const DiffChange& change) {
  if (change.is_new) return "new";
  return change.is_gone ? "gone" : "";
}

// "0.012 *"
std::string PText(double p) {
  constexpr double kMin = 1e-6;
  if (p < kMin) return "<1e-6 *";
  return fmt::format("{:.2g}{}", p, p < kTestLevel ? " *" : "");
}

ColumnUnit FigureUnit(const Diff& diff) {
  if (diff.of != DiffBasis::kWork) return ColumnUnit::kShare;
  return diff.is_time ? ColumnUnit::kCycles : ColumnUnit::kCount;
}

// Returns the compared figure in words.
const char* OfText(const Diff& diff) {
  switch (diff.of) {
    case DiffBasis::kShare:
      if (diff.of_domains) {
        return diff.is_time ? "share of the domain's time" : "share of the domain's samples";
      }
      return diff.is_time ? "share of all time" : "share of all samples";
    case DiffBasis::kProcessor:
      return "CPU time per second";
    case DiffBasis::kWork:
      break;
  }
  return diff.is_time ? "cycles per unit of work" : "samples per unit of work";
}

const char* KeyOf(DiffBasis of) {
  switch (of) {
    case DiffBasis::kShare:
      return "share";
    case DiffBasis::kProcessor:
      return "processor";
    case DiffBasis::kWork:
      break;
  }
  return "work";
}

Table TableOf(const Diff& diff, const DiffSelection& selection, Reader reader) {
  Table table;
  for (const Dimension dimension : diff.by) {
    const std::string name(ToString(dimension));
    table.columns.push_back({name, name});
  }
  table.columns.push_back({"before", "before", FigureUnit(diff), Shorten::kEnd});
  const bool several = diff.afters.size() > 1;
  for (size_t i = 1; i <= diff.afters.size(); ++i) {
    const std::string number = several ? fmt::format("_{}", i) : "";
    const std::string after = several ? fmt::format("after {}", i) : "after";
    table.columns.push_back({"after" + number, after, FigureUnit(diff), Shorten::kEnd});
    for (const std::string figure : {"difference", "low", "high"}) {
      table.columns.push_back({figure + number, figure, FigureUnit(diff), Shorten::kEnd,
                               figure == "low" ? Narrow::kFold : Narrow::kKeep});
    }
    table.columns.push_back(
        {"p" + number, several ? fmt::format("p {}", i) : "p", ColumnUnit::kText, Shorten::kEnd});
    table.columns.push_back({"note" + number, "", ColumnUnit::kText, Shorten::kEnd});
  }
  for (const DiffRow* row : Selected(diff, selection)) {
    std::vector<Cell> cells(row->words.begin(), row->words.end());
    cells.emplace_back(row->before.value);
    for (const DiffChange& change : row->changes) {
      for (const double value : {change.after.value, change.difference.value, change.difference.low,
                                 change.difference.high}) {
        cells.emplace_back(value);
      }
      const double p = change.difference.p;
      cells.push_back(reader == Reader::kPeople ? Cell(PText(p)) : Cell(p));
      cells.emplace_back(std::string(Note(change)));
    }
    table.AddRow(std::move(cells));
  }
  return table;
}

// The share of each profile by the text of the row. Rows with the same text are summed.
using Found = std::map<std::vector<std::string>, std::vector<std::optional<Estimated>>>;

Found RowsOf(std::span<const DiffSide> sides) {
  Found found;
  for (size_t side = 0; side < sides.size(); ++side) {
    const ProfileReport& report = *sides[side].profile;
    for (const ProfileRow& row : report.result.rows) {
      std::vector<std::optional<Estimated>>& of = found[RowWords(report, row)];
      of.resize(sides.size());
      std::optional<Estimated>& sum = of[side];
      if (!sum) sum.emplace();
      sum->value += row.share;
      sum->variance += row.variance;
    }
  }
  return found;
}

// Compares the rows of both profiles. Returns the number of comparisons.
size_t CompareAll(std::vector<DiffRow>& rows) {
  std::vector<correlate::EstimatePair> pairs;
  std::vector<DiffChange*> changes;
  for (DiffRow& row : rows) {
    for (DiffChange& change : row.changes) {
      if (row.before.value == 0 && change.after.value == 0) continue;
      pairs.push_back({row.before, change.after});
      changes.push_back(&change);
    }
  }
  const std::vector<correlate::Difference> differences = correlate::Compare(pairs);
  for (size_t i = 0; i < differences.size(); ++i) changes[i]->difference = differences[i];
  return pairs.size();
}

ordered_json ChangeJson(const DiffChange& change) {
  return {{"after", change.after.value},  {"difference", change.difference.value},
          {"low", change.difference.low}, {"high", change.difference.high},
          {"p", change.difference.p},     {"note", Note(change)}};
}

ordered_json ProfileJson(const DiffedProfile& profile) {
  return {{"name", profile.name}, {"samples", profile.samples}};
}

// Returns by how much the row grew in a later profile, where this is more than chance; 0: it did
// not.
double GrowthOf(const DiffRow& row) {
  double growth = 0;
  for (const DiffChange& change : row.changes) {
    if (change.difference.p < kTestLevel) growth = std::max(growth, change.difference.value);
  }
  return growth;
}

}  // namespace

double DiffRow::Largest() const {
  double largest = 0;
  for (const DiffChange& change : changes) {
    largest = std::max(largest, std::abs(change.difference.value));
  }
  return largest;
}

Diff DiffProfiles(std::span<const DiffSide> sides, DiffBasis of) {
  const ProfileReport& first = *sides[0].profile;
  Diff diff;
  diff.by = first.by;
  diff.of = of;
  diff.is_time = first.is_time;
  std::vector<double> scales;
  for (const DiffSide& side : sides) {
    const DiffedProfile profile{side.name, side.profile->result.samples};
    if (scales.empty()) diff.before = profile;
    if (!scales.empty()) diff.afters.push_back(profile);
    scales.push_back(ScaleOf(*side.profile, of, side.work));
  }
  if (of == DiffBasis::kWork) diff.whole = scales[0];
  for (const auto& [words, seen] : RowsOf(sides)) {
    const auto scaled = [&, &seen = seen](size_t side) {
      const double samples = sides[side].profile->result.samples;
      return Scaled(seen[side].value_or(correlate::UnseenShare(samples)), scales[side]);
    };
    DiffRow& row = diff.rows.emplace_back();
    row.words = words;
    row.before = scaled(0);
    for (size_t side = 1; side < sides.size(); ++side) {
      row.changes.push_back(
          {scaled(side), {}, !seen[0] && seen[side].has_value(), seen[0] && !seen[side]});
    }
  }
  diff.comparisons = CompareAll(diff.rows);
  std::ranges::stable_sort(
      diff.rows, [](const DiffRow& a, const DiffRow& b) { return a.Largest() > b.Largest(); });
  return diff;
}

std::vector<const DiffRow*> GrownRows(const Diff& diff, double threshold) {
  std::vector<const DiffRow*> grown;
  for (const DiffRow& row : diff.rows) {
    if (GrowthOf(row) > threshold * diff.whole) grown.push_back(&row);
  }
  std::ranges::stable_sort(grown, std::ranges::greater(),
                           [](const DiffRow* row) { return GrowthOf(*row); });
  return grown;
}

std::string GrownRowsText(const Diff& diff, const std::vector<const DiffRow*>& grown,
                          double threshold) {
  constexpr size_t kNamed = 3;
  std::vector<std::string> named;
  for (const DiffRow* row : grown) {
    if (named.size() == kNamed) break;
    named.push_back(fmt::format("{} (+{})", fmt::join(row->words, " "),
                                CellText(GrowthOf(*row) / diff.whole, ColumnUnit::kShare)));
  }
  std::string text =
      fmt::format("{} by more than {} and by more than chance: {}",
                  grown.size() == 1 ? "1 row grew" : fmt::format("{} rows grew", grown.size()),
                  CellText(threshold, ColumnUnit::kShare), fmt::join(named, ", "));
  if (grown.size() > kNamed) text += fmt::format(", and {} more", grown.size() - kNamed);
  return text;
}

std::string DiffText(const Diff& diff, const DiffSelection& selection, const TextStyle& style) {
  const bool several = diff.afters.size() > 1;
  const auto line = [several](std::string_view what, const DiffedProfile& profile) {
    return fmt::format("{:<{}}{} ({} samples)\n", what, several ? 10 : 8, profile.name,
                       CellText(profile.samples, ColumnUnit::kCount));
  };
  std::string text = line("before:", diff.before);
  for (size_t i = 0; i < diff.afters.size(); ++i) {
    text += line(several ? fmt::format("after {}:", i + 1) : "after:", diff.afters[i]);
  }
  text += fmt::format(
      "{}; low to high, or ±: 95 % interval of the difference{}; p: corrected for {} comparisons, "
      "*: below "
      "0.05\n\n",
      OfText(diff), several ? " from before" : "", diff.comparisons);
  TextStyle figures_first = style;
  figures_first.figures_first = true;
  text += ToText(TableOf(diff, selection, Reader::kPeople), figures_first);
  text += "\n";
  for (size_t i = 0; i < diff.afters.size(); ++i) {
    size_t seen = 0;
    size_t significant = 0;
    size_t came = 0;
    size_t went = 0;
    for (const DiffRow& row : diff.rows) {
      const DiffChange& change = row.changes[i];
      seen += static_cast<size_t>(row.before.value != 0 || change.after.value != 0);
      significant += static_cast<size_t>(change.difference.p < kTestLevel);
      came += static_cast<size_t>(change.is_new);
      went += static_cast<size_t>(change.is_gone);
    }
    text +=
        fmt::format("{}{} rows: {} differ significantly (p below 0.05), {} new, {} gone\n",
                    several ? fmt::format("after {}: ", i + 1) : "", seen, significant, came, went);
  }
  return text;
}

std::string DiffCsv(const Diff& diff, const DiffSelection& selection) {
  return ToCsv(TableOf(diff, selection, Reader::kProgram));
}

std::string DiffFolded(const Diff& diff, const DiffSelection& selection) {
  constexpr double kMillion = 1e6;
  std::string text;
  for (const DiffRow* row : Selected(diff, selection)) {
    // A row without samples has an upper estimate of its share; a picture shows 0.
    const DiffChange& change = row->changes[0];
    const auto before = std::llround(change.is_new ? 0 : row->before.value * kMillion);
    const auto after = std::llround(change.is_gone ? 0 : change.after.value * kMillion);
    if (before == 0 && after == 0) continue;
    fmt::format_to(std::back_inserter(text), "{} {} {}\n",
                   Printable(fmt::format("{}", fmt::join(row->words, ";"))), before, after);
  }
  return text;
}

ordered_json DiffJson(const Diff& diff, const DiffSelection& selection) {
  const bool several = diff.afters.size() > 1;
  ordered_json rows = ordered_json::array();
  for (const DiffRow* row : Selected(diff, selection)) {
    ordered_json one;
    for (size_t i = 0; i < diff.by.size(); ++i) {
      one[std::string(ToString(diff.by[i]))] = row->words[i];
    }
    one["before"] = row->before.value;
    if (several) {
      for (const DiffChange& change : row->changes) one["changes"].push_back(ChangeJson(change));
    } else {
      one.update(ChangeJson(row->changes[0]));
    }
    rows.push_back(std::move(one));
  }
  ordered_json after = ProfileJson(diff.afters[0]);
  if (several) {
    after = ordered_json::array();
    for (const DiffedProfile& profile : diff.afters) after.push_back(ProfileJson(profile));
  }
  return {{"before", ProfileJson(diff.before)},
          {"after", std::move(after)},
          {"of", KeyOf(diff.of)},
          {"compared", OfText(diff)},
          {"comparisons", diff.comparisons},
          {"rows", std::move(rows)}};
}

}  // namespace xenoscope::report
