#include "report/diff_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "report/markup.h"
#include "report/table.h"
#include "report/table_csv.h"
#include "report/table_json.h"

namespace xenoscope::report {
namespace {

using correlate::Dimension;
using correlate::Estimated;
using correlate::ProfileRow;
using nlohmann::ordered_json;

// Corrected p-values below this are marked.
constexpr double kLevel = 0.05;

// What a share is multiplied by.
double ScaleOf(const ProfileReport& report, DiffOf of, double work) {
  if (of == DiffOf::kShare) return 1;
  if (of == DiffOf::kWork) return report.result.cycles / work;
  const auto length = static_cast<double>(report.sampled.Length());
  return length > 0 ? report.result.cycles / length : 0;
}

Estimated Scaled(Estimated share, double scale) {
  return {share.value * scale, share.variance * scale * scale};
}

std::vector<const DiffRow*> Selected(const Diff& diff, const DiffSelection& selection) {
  std::vector<const DiffRow*> rows;
  for (const DiffRow& row : diff.rows) {
    if (std::abs(row.difference.value) < selection.threshold * diff.whole) continue;
    if (selection.limit != 0 && rows.size() == selection.limit) break;
    rows.push_back(&row);
  }
  return rows;
}

std::string_view Note(const DiffRow& row) {
  if (row.is_new) return "new";
  return row.is_gone ? "gone" : "";
}

// "0.012 *"
std::string PText(double p) {
  constexpr double kLeast = 1e-6;
  if (p < kLeast) return "<1e-6 *";
  return fmt::format("{:.2g}{}", p, p < kLevel ? " *" : "");
}

Unit FigureUnit(const Diff& diff) {
  if (diff.of != DiffOf::kWork) return Unit::kShare;
  return diff.is_time ? Unit::kCycles : Unit::kCount;
}

// What is compared, in words.
const char* OfText(const Diff& diff) {
  switch (diff.of) {
    case DiffOf::kShare:
      if (diff.of_domains) {
        return diff.is_time ? "shares of the domain's own time" : "shares of the domain's samples";
      }
      return diff.is_time ? "shares of all time" : "shares of all samples";
    case DiffOf::kProcessor:
      return "processors' time a second";
    case DiffOf::kWork:
      break;
  }
  return diff.is_time ? "cycles a unit of work" : "samples a unit of work";
}

const char* KeyOf(DiffOf of) {
  switch (of) {
    case DiffOf::kShare:
      return "share";
    case DiffOf::kProcessor:
      return "processor";
    case DiffOf::kWork:
      break;
  }
  return "work";
}

enum class Reader { kPeople, kProgram };

Table TableOf(const Diff& diff, const DiffSelection& selection, Reader reader) {
  Table table;
  for (const Dimension dimension : diff.by) {
    const std::string name(ToString(dimension));
    table.columns.push_back({name, name});
  }
  for (const char* const figure : {"before", "after", "difference", "low", "high"}) {
    table.columns.push_back({figure, figure, FigureUnit(diff), Shorten::kEnd});
  }
  table.columns.push_back({"p", "p", Unit::kText, Shorten::kEnd});
  table.columns.push_back({"note", "", Unit::kText, Shorten::kEnd});
  for (const DiffRow* row : Selected(diff, selection)) {
    std::vector<Cell> cells(row->words.begin(), row->words.end());
    for (const double value : {row->pair.before.value, row->pair.after.value, row->difference.value,
                               row->difference.low, row->difference.high}) {
      cells.emplace_back(value);
    }
    const double p = row->difference.p;
    cells.push_back(reader == Reader::kPeople ? Cell(PText(p)) : Cell(p));
    cells.emplace_back(std::string(Note(*row)));
    table.AddRow(std::move(cells));
  }
  return table;
}

}  // namespace

Diff DiffOfProfiles(const ProfileReport& before, const ProfileReport& after, DiffOf of, Work work) {
  Diff diff;
  diff.by = before.by;
  diff.of = of;
  diff.is_time = before.is_time;
  diff.samples_before = before.result.samples;
  diff.samples_after = after.result.samples;
  std::map<std::vector<std::string>, std::array<std::optional<Estimated>, 2>> found;
  for (const bool is_after : {false, true}) {
    const ProfileReport& report = is_after ? after : before;
    for (const ProfileRow& row : report.result.rows) {
      std::vector<std::string> words;
      for (const Dimension dimension : report.by) {
        words.push_back(DimensionText(report, row, dimension));
      }
      std::optional<Estimated>& sum = found[std::move(words)].at(is_after ? 1 : 0);
      if (!sum) sum.emplace();
      sum->value += row.share;  // functions of one name are one
      sum->variance += row.variance;
    }
  }
  const double scale_before = ScaleOf(before, of, work.before);
  const double scale_after = ScaleOf(after, of, work.after);
  if (of == DiffOf::kWork) diff.whole = scale_before;
  std::vector<correlate::Pair> pairs;
  for (const auto& [words, both] : found) {
    DiffRow& row = diff.rows.emplace_back();
    row.words = words;
    row.is_new = !both[0];
    row.is_gone = !both[1];
    row.pair.before =
        Scaled(both[0].value_or(correlate::Unseen(before.result.samples)), scale_before);
    row.pair.after = Scaled(both[1].value_or(correlate::Unseen(after.result.samples)), scale_after);
    pairs.push_back(row.pair);
  }
  const std::vector<correlate::Difference> differences = correlate::Compare(pairs);
  for (size_t i = 0; i < differences.size(); ++i) diff.rows[i].difference = differences[i];
  std::ranges::stable_sort(diff.rows, [](const DiffRow& a, const DiffRow& b) {
    return std::abs(a.difference.value) > std::abs(b.difference.value);
  });
  return diff;
}

std::string DiffText(const Diff& diff, const DiffSelection& selection, const TextStyle& style) {
  std::string text = fmt::format(
      "before: {} ({} samples)\nafter:  {} ({} samples)\n{}; low, high: 95 % interval of the "
      "difference; p: corrected for {} comparisons, * below 0.05\n\n",
      diff.before, CellText(diff.samples_before, Unit::kCount), diff.after,
      CellText(diff.samples_after, Unit::kCount), OfText(diff), diff.rows.size());
  TextStyle figures_first = style;
  figures_first.figures_first = true;
  text += ToText(TableOf(diff, selection, Reader::kPeople), figures_first);
  size_t significant = 0;
  size_t came = 0;
  size_t went = 0;
  for (const DiffRow& row : diff.rows) {
    significant += static_cast<size_t>(row.difference.p < kLevel);
    came += static_cast<size_t>(row.is_new);
    went += static_cast<size_t>(row.is_gone);
  }
  text += fmt::format("\n{} rows, {} of them differ by more than chance; {} are new, {} are gone\n",
                      diff.rows.size(), significant, came, went);
  return text;
}

std::string DiffCsv(const Diff& diff, const DiffSelection& selection) {
  return ToCsv(TableOf(diff, selection, Reader::kProgram));
}

std::string DiffFolded(const Diff& diff, const DiffSelection& selection) {
  constexpr double kMillion = 1e6;
  std::string text;
  for (const DiffRow* row : Selected(diff, selection)) {
    // A row that was not seen has what may have been there: none, for a picture.
    const auto before = std::llround(row->is_new ? 0 : row->pair.before.value * kMillion);
    const auto after = std::llround(row->is_gone ? 0 : row->pair.after.value * kMillion);
    if (before == 0 && after == 0) continue;
    fmt::format_to(std::back_inserter(text), "{} {} {}\n",
                   Printable(fmt::format("{}", fmt::join(row->words, ";"))), before, after);
  }
  return text;
}

ordered_json DiffJson(const Diff& diff, const DiffSelection& selection) {
  ordered_json rows = ordered_json::array();
  for (const DiffRow* row : Selected(diff, selection)) {
    ordered_json one;
    for (size_t i = 0; i < diff.by.size(); ++i) {
      one[std::string(ToString(diff.by[i]))] = row->words[i];
    }
    one["before"] = row->pair.before.value;
    one["after"] = row->pair.after.value;
    one["difference"] = row->difference.value;
    one["low"] = row->difference.low;
    one["high"] = row->difference.high;
    one["p"] = row->difference.p;
    one["note"] = Note(*row);
    rows.push_back(std::move(one));
  }
  return {{"before", {{"name", diff.before}, {"samples", diff.samples_before}}},
          {"after", {{"name", diff.after}, {"samples", diff.samples_after}}},
          {"of", KeyOf(diff.of)},
          {"compared", OfText(diff)},
          {"comparisons", diff.rows.size()},
          {"rows", std::move(rows)}};
}

}  // namespace xenoscope::report
