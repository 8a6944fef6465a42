// The part of Profile that adds rows up into those by the first columns alone.
#include <algorithm>
#include <span>
#include <utility>

#include "correlate/profile.h"
#include "correlate/profile_estimate.h"

namespace xenoscope::correlate {
namespace {

// Whether the functions of one stack can be of different rows by these columns.
bool TellFramesApart(std::span<const Dimension> by) {
  return std::ranges::any_of(by, [](Dimension dimension) {
    return dimension == Dimension::kMode || dimension == Dimension::kImage ||
           dimension == Dimension::kFunction;
  });
}

}  // namespace

void Profile::MakeLevels() {
  const std::span<const Dimension> by(options_.by);
  // The domains of all rows are there without a level.
  for (size_t columns = options_.choice.is_chosen ? 1 : 2; columns < by.size(); ++columns) {
    Level& level = levels_.emplace_back(by.first(columns), row_events_.events());
    level.has_totals =
        options_.totals && (TellFramesApart(level.by) || TellFramesApart(options_.choice.by));
  }
}

bool Profile::IsChosen(const KeyLayout& layout, const RowKey& key) const {
  if (!options_.choice.is_chosen) return true;
  RowKey asked = choice_layout_.EmptyKey();
  for (const Dimension dimension : options_.choice.by) {
    choice_layout_.Put(dimension, layout.Get(dimension, key), asked);
  }
  ProfileRow row;
  SetDimensions(choice_layout_, asked, row);
  return options_.choice.is_chosen(row);
}

uint32_t Profile::LevelRowOf(LevelRows& level, const RowSums& from, uint32_t row) {
  const KeyLayout& layout = level.sums.layout;
  // Rows are numbered in the order in which they come: all before this one may be new, too.
  for (auto next = static_cast<uint32_t>(level.row_of.size()); next <= row; ++next) {
    const RowKey& all = from.keys[next];
    RowKey key = layout.EmptyKey();
    for (const Dimension dimension : options_.by) {
      layout.Put(dimension, from.layout.Get(dimension, all), key);
    }
    level.row_of.push_back(IsChosen(from.layout, all) ? level.sums.Find(key) : kNotChosen);
  }
  return level.row_of[row];
}

uint32_t Profile::LevelPartOf(Level& level, uint32_t number) {
  if (number >= level.part_of.size()) level.part_of.resize(number + 1, kUnknown);
  if (level.part_of[number] != kUnknown) return level.part_of[number];
  const Part& part = sums_.rows.parts[number];
  uint32_t of = LevelRowOf(level.rows, sums_.rows, part.row);
  if (of != kNotChosen) {
    of = PartOf(level.rows.sums, of, sums_.strata.all[part.stratum].vcpu, part.stratum);
  }
  return level.part_of[number] = of;
}

void Profile::SumLevels() {
  for (Level& level : levels_) {
    for (const uint32_t number : parts_) {
      const uint32_t of = LevelPartOf(level, number);
      if (of == kNotChosen) continue;
      AddToPart(level.rows.sums, of, sums_.rows.parts[number].in_cluster, level.rows.closing);
    }
  }
}

bool Profile::IsExact(const Level& level) const {
  return std::ranges::all_of(level.by, IsOfStrata) &&
         std::ranges::all_of(options_.choice.by, IsOfStrata);
}

std::vector<ProfileRow> Profile::RowsOf(const ProfileEstimator& estimator, Level& level) {
  if (level.has_totals) AddRowsOfTotals(level.totals.sums, level.rows.sums);
  std::vector<ProfileRow> rows = estimator.RowsOf(level.rows.sums, IsExact(level));
  if (level.has_totals) SetTotals(estimator, level.totals.sums, level.rows.sums, rows);
  Describe(level.rows.sums, level.events, rows);
  return rows;
}

void Profile::SetSubtotals(const ProfileEstimator& estimator, ProfileResult& result) {
  std::vector<std::vector<ProfileRow>>& out =
      options_.choice.is_chosen ? result.chosen_subtotals : result.subtotals;
  for (Level& level : levels_) {
    // Rows of totals alone may be new to the level.
    for (uint32_t row = 0; row < result.rows.size(); ++row) {
      LevelRowOf(level.rows, sums_.rows, row);
    }
    out.push_back(RowsOf(estimator, level));
  }
  for (size_t depth = 0; depth < levels_.size(); ++depth) {
    Level& level = levels_[depth];
    for (uint32_t row = 0; row < result.rows.size(); ++row) {
      const uint32_t of = LevelRowOf(level.rows, sums_.rows, row);
      if (of == kNotChosen) continue;
      if (depth > 0) out[depth][of].part_of = result.rows[row].part_of;
      result.rows[row].part_of = of;
    }
  }
}

}  // namespace xenoscope::correlate
