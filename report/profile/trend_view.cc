#include "report/profile/trend_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "report/profile/row_words.h"

namespace xenoscope::report {
namespace {

using correlate::ChangePoint;
using correlate::Dimension;
using correlate::ProfileRow;

constexpr double kFalseAlarms = 0.05;  // of false alarms, over all rows together

using Words = std::vector<std::string>;

// The row's share in a part of the time; without a row, that of no sample.
TrendPoint PointOf(const ProfileReport& profile, const ProfileRow* row) {
  if (row == nullptr) return {0, correlate::Wilson(0, profile.result.samples), {}};
  return {row->share, row->interval, {}};
}

double MeanShare(const TrendRow& row) {
  double sum = 0;
  for (const TrendPoint& point : row.points) sum += point.share;
  return sum / static_cast<double>(row.points.size());
}

void MarkChanges(TrendRow& row, double level) {
  std::vector<double> shares;
  for (const TrendPoint& point : row.points) shares.push_back(point.share);
  for (const ChangePoint& change : correlate::FindChangePoints(shares, level)) {
    row.points[change.at].change = change;
  }
}

std::string ChangeText(const ChangePoint& change) {
  return fmt::format("{} from {:.2f}% to {:.2f}%", change.after > change.before ? "up" : "down",
                     100 * change.before, 100 * change.after);
}

}  // namespace

std::vector<TrendRow> Trend(const std::vector<TrendPart>& parts, size_t limit) {
  std::vector<std::map<Words, const ProfileRow*>> by_words(parts.size());
  std::map<Words, TrendRow> all;
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const ProfileRow& row : parts[i].profile.result.rows) {
      Words words = RowWords(parts[i].profile, row);
      all[words].words = words;
      by_words[i][std::move(words)] = &row;
    }
  }
  std::vector<TrendRow> rows;
  for (auto& [words, row] : all) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto found = by_words[i].find(words);
      row.points.push_back(
          PointOf(parts[i].profile, found == by_words[i].end() ? nullptr : found->second));
    }
    rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, std::ranges::greater(), MeanShare);
  if (limit > 0 && rows.size() > limit) rows.resize(limit);
  for (TrendRow& row : rows) MarkChanges(row, kFalseAlarms / static_cast<double>(rows.size()));
  return rows;
}

Table TrendTable(const std::vector<TrendPart>& parts, const std::vector<TrendRow>& rows) {
  Table table;
  if (parts.empty()) return table;
  for (const Dimension dimension : parts.front().profile.by) {
    const std::string name(ToString(dimension));
    table.columns.push_back({name, name});
  }
  table.columns.push_back({"time", "time"});
  for (const char* const figure : {"share", "low", "high"}) {
    table.columns.push_back({figure, figure, ColumnUnit::kShare, Shorten::kEnd});
  }
  table.columns.push_back({"p", "p of change", ColumnUnit::kText, Shorten::kEnd});
  table.columns.push_back({"change", "change of level", ColumnUnit::kText, Shorten::kEnd});
  for (const TrendRow& row : rows) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const TrendPoint& point = row.points[i];
      std::vector<Cell> cells(row.words.begin(), row.words.end());
      cells.emplace_back(parts[i].begin);
      for (const double share : {point.share, point.interval.low, point.interval.high}) {
        cells.emplace_back(share);
      }
      cells.resize(cells.size() + 2);
      if (point.change) {
        cells[cells.size() - 2] = fmt::format("{:.2g}", point.change->p);
        cells.back() = ChangeText(*point.change);
      }
      table.AddRow(std::move(cells));
    }
  }
  return table;
}

}  // namespace xenoscope::report
