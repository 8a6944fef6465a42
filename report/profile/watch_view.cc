#include "report/profile/watch_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "report/profile/diff_view.h"
#include "report/profile/row_words.h"
#include "report/table/table.h"
#include "report/table/table_csv.h"
#include "report/table/table_json.h"

namespace xenoscope::report {
namespace {

using correlate::Estimated;
using correlate::ProfileRow;
using nlohmann::ordered_json;

using Words = std::vector<std::string>;

std::vector<WatchRow> RowsOf(const ProfileReport& now) {
  std::vector<WatchRow> rows;
  rows.reserve(now.result.rows.size());
  for (const ProfileRow& row : now.result.rows) {
    WatchRow& out = rows.emplace_back();
    out.words = RowWords(now, row);
    out.share = row.share;
    out.interval = row.interval;
  }
  return rows;
}

void CompareWithShare(const ProfileReport& now, const WatchLimits& limits,
                      std::vector<WatchRow>& rows) {
  std::vector<Estimated> shares;
  shares.reserve(rows.size());
  for (const ProfileRow& row : now.result.rows) shares.push_back({row.share, row.variance});
  const std::vector<double> p = correlate::ChanceOfAbove(shares, *limits.share);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].p_share = p[i];
    rows[i].is_above = p[i] < limits.alpha;
  }
}

void CompareWithBase(const ProfileReport& now, const ProfileReport& base, const WatchLimits& limits,
                     std::vector<WatchRow>& rows) {
  const std::array<DiffSide, 2> sides = {DiffSide{&base, {}}, DiffSide{&now, {}}};
  const Diff diff = DiffProfiles(sides, DiffBasis::kShare);
  std::map<Words, size_t> number_of;
  for (size_t i = 0; i < rows.size(); ++i) number_of.emplace(rows[i].words, i);
  std::vector<Estimated> growths;
  std::vector<size_t> numbers;
  for (const DiffRow& row : diff.rows) {
    const auto found = number_of.find(row.words);
    if (found == number_of.end()) continue;  // of the base alone
    const DiffChange& change = row.changes.front();
    WatchRow& out = rows[found->second];
    out.base = change.is_new ? 0 : row.before.value;
    out.growth = change.difference;
    growths.push_back({change.difference.value, row.before.variance + change.after.variance});
    numbers.push_back(found->second);
  }
  if (!limits.growth) return;
  const std::vector<double> p = correlate::ChanceOfAbove(growths, *limits.growth);
  for (size_t i = 0; i < p.size(); ++i) {
    rows[numbers[i]].p_growth = p[i];
    rows[numbers[i]].has_grown = p[i] < limits.alpha;
  }
}

std::string AlarmWords(const WatchRow& row) {
  if (row.is_above && row.has_grown) return "above, grown";
  if (row.is_above) return "above";
  return row.has_grown ? "grown" : "";
}

Cell PCell(double p, Reader reader) {
  constexpr double kMin = 1e-6;
  if (reader == Reader::kProgram) return p;
  return p < kMin ? std::string("<1e-6") : fmt::format("{:.2g}", p);
}

Table TableOf(const Watch& watch, size_t limit, Reader reader) {
  Table table;
  for (const correlate::Dimension dimension : watch.by) {
    const std::string name(ToString(dimension));
    table.columns.push_back({name, name});
  }
  const auto add_share = [&table](const std::string& key, const std::string& title,
                                  Narrow narrow = Narrow::kKeep) {
    table.columns.push_back({key, title, ColumnUnit::kShare, Shorten::kEnd, narrow});
  };
  const ColumnUnit p_unit = ColumnUnit::kText;
  add_share("share", "share");
  add_share("low", "low", Narrow::kFold);
  add_share("high", "high");
  if (watch.limits.share) table.columns.push_back({"p_share", "p", p_unit, Shorten::kEnd});
  if (watch.has_base) {
    add_share("base", "base");
    add_share("growth", "growth");
    add_share("growth_low", "low", Narrow::kFold);
    add_share("growth_high", "high");
  }
  if (watch.limits.growth) {
    table.columns.push_back({"p_growth", "p of growth", p_unit, Shorten::kEnd});
  }
  table.columns.push_back({"alarm", "alarm", ColumnUnit::kText, Shorten::kEnd});
  size_t shown = 0;
  for (const WatchRow& row : watch.rows) {
    if (limit != 0 && shown >= limit && !row.IsAlarm()) break;
    ++shown;
    std::vector<Cell> cells(row.words.begin(), row.words.end());
    for (const double value : {row.share, row.interval.low, row.interval.high}) {
      cells.emplace_back(value);
    }
    if (watch.limits.share) cells.push_back(PCell(row.p_share, reader));
    if (watch.has_base) {
      for (const double value : {row.base, row.growth.value, row.growth.low, row.growth.high}) {
        cells.emplace_back(value);
      }
    }
    if (watch.limits.growth) cells.push_back(PCell(row.p_growth, reader));
    cells.emplace_back(AlarmWords(row));
    table.AddRow(std::move(cells));
  }
  return table;
}

// What the limits are, in words.
std::string LimitsText(const WatchLimits& limits) {
  std::vector<std::string> parts;
  if (limits.share) parts.push_back(fmt::format("a share above {}", Percent(*limits.share)));
  if (limits.growth) {
    parts.push_back(fmt::format("a growth of more than {}", Percent(*limits.growth)));
  }
  if (parts.empty()) return "no limit";
  return fmt::format("alarm: {}, where p is below {}", fmt::join(parts, " or "), limits.alpha);
}

std::string_view OfText(const Watch& watch) {
  if (watch.of_domain) {
    return watch.is_time ? "share of the domain's time" : "share of the domain's samples";
  }
  return watch.is_time ? "share of all time" : "share of all samples";
}

}  // namespace

Watch WatchProfile(const ProfileReport& now, const ProfileReport* base, const WatchLimits& limits) {
  Watch watch;
  watch.by = now.by;
  watch.event = now.event;
  watch.limits = limits;
  watch.is_time = now.is_time;
  watch.samples = now.result.samples;
  watch.rows = RowsOf(now);
  if (limits.share) CompareWithShare(now, limits, watch.rows);
  if (base != nullptr) {
    watch.has_base = true;
    watch.base_samples = base->result.samples;
    CompareWithBase(now, *base, limits, watch.rows);
  }
  std::ranges::stable_sort(watch.rows, [](const WatchRow& a, const WatchRow& b) {
    return std::pair(a.IsAlarm(), a.share) > std::pair(b.IsAlarm(), b.share);
  });
  return watch;
}

size_t Alarms(const Watch& watch) {
  return static_cast<size_t>(std::ranges::count_if(watch.rows, &WatchRow::IsAlarm));
}

std::string AlarmText(const Watch& watch) {
  constexpr size_t kNamed = 3;
  const size_t alarms = Alarms(watch);
  std::vector<std::string> named;
  named.reserve(kNamed);
  for (const WatchRow& row : watch.rows) {
    if (!row.IsAlarm() || named.size() == kNamed) break;
    const std::string grown =
        row.has_grown ? fmt::format(", +{}", Percent(row.growth.value)) : std::string();
    named.push_back(fmt::format("{} ({}{})", fmt::join(row.words, " "), Percent(row.share), grown));
  }
  std::string text = fmt::format("{} by more than chance: {}",
                                 alarms == 1 ? "1 row is above its limit"
                                             : fmt::format("{} rows are above their limit", alarms),
                                 fmt::join(named, ", "));
  if (alarms > kNamed) text += fmt::format(", and {} more", alarms - kNamed);
  return text;
}

std::string WatchText(const Watch& watch, size_t limit, const TextStyle& style) {
  std::string text =
      fmt::format("{}, {} samples", OfText(watch), CellText(watch.samples, ColumnUnit::kCount));
  if (watch.has_base) {
    text += fmt::format("; base: {} samples", CellText(watch.base_samples, ColumnUnit::kCount));
  }
  text += fmt::format(
      "\nlow to high, or ±: 95 % interval; p: probability of such an alarm by chance, corrected "
      "for "
      "{} rows\n{}\n\n",
      watch.rows.size(), LimitsText(watch.limits));
  return text + ToText(TableOf(watch, limit, Reader::kPeople), style);
}

std::string WatchCsv(const Watch& watch, size_t limit) {
  return ToCsv(TableOf(watch, limit, Reader::kProgram));
}

ordered_json WatchJson(const Watch& watch, size_t limit) {
  ordered_json limits = ordered_json::object();
  if (watch.limits.share) limits["share"] = *watch.limits.share;
  if (watch.limits.growth) limits["growth"] = *watch.limits.growth;
  limits["alpha"] = watch.limits.alpha;
  return {{"event", watch.event},
          {"of", OfText(watch)},
          {"samples", watch.samples},
          {"base_samples", watch.has_base ? ordered_json(watch.base_samples) : ordered_json()},
          {"comparisons", watch.rows.size()},
          {"limits", std::move(limits)},
          {"alarms", Alarms(watch)},
          {"rows", ToJson(TableOf(watch, limit, Reader::kProgram))}};
}

}  // namespace xenoscope::report
