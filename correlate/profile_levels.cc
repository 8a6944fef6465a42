// The part of Profile that adds rows up into those by the first columns alone.
#include <algorithm>
#include <span>
#include <utility>

#include "correlate/profile.h"
#include "correlate/profile_estimate.h"

namespace xenoscope::correlate {
namespace {

constexpr uint32_t kNoPart = ~uint32_t{0};
// Rows of each level have a range of their own in StratumUnions, those of the profile the first.
constexpr int kUnionBits = 27;
static_assert((kDimensions << kUnionBits) < uint64_t{1} << 32);

}  // namespace

void Profile::MakeLevels() {
  const std::span<const Dimension> by(options_.by);
  for (size_t columns = 2; columns < by.size(); ++columns) {
    levels_.emplace_back(by.first(columns), static_cast<uint32_t>(columns - 1) << kUnionBits,
                         row_events_.events());
  }
}

uint32_t Profile::LevelRowOf(Level& level, uint32_t row) {
  const RowSums& rows = sums_.rows;
  // Rows are numbered in the order in which they come: all before this one may be new, too.
  for (auto next = static_cast<uint32_t>(level.row_of.size()); next <= row; ++next) {
    RowKey key = level.sums.layout.EmptyKey();
    for (const Dimension dimension : level.by) {
      level.sums.layout.Put(dimension, rows.layout.Get(dimension, rows.keys[next]), key);
    }
    level.row_of.push_back(level.sums.Find(key));
  }
  return level.row_of[row];
}

uint32_t Profile::LevelPartOf(Level& level, uint32_t number) {
  if (number >= level.part_of.size()) level.part_of.resize(number + 1, kNoPart);
  uint32_t& known = level.part_of[number];
  if (known != kNoPart) return known;
  const Part& part = sums_.rows.parts[number];
  known = PartOf(level.sums, LevelRowOf(level, part.row), sums_.strata.all[part.stratum].vcpu,
                 part.stratum);
  return known;
}

void Profile::SumLevels() {
  for (Level& level : levels_) {
    for (const uint32_t number : parts_) {
      AddToPart(level.sums, LevelPartOf(level, number), sums_.rows.parts[number].in_cluster,
                level.closing);
    }
  }
}

void Profile::SetSubtotals(const ProfileEstimator& estimator, ProfileResult& result) {
  for (size_t depth = 0; depth < levels_.size(); ++depth) {
    Level& level = levels_[depth];
    std::vector<ProfileRow> rows =
        estimator.RowsOf(level.sums, std::ranges::all_of(level.by, IsOfStrata));
    Describe(level.sums, level.events, rows);
    for (uint32_t row = 0; row < result.rows.size(); ++row) {
      if (depth > 0) rows[LevelRowOf(level, row)].part_of = result.rows[row].part_of;
      result.rows[row].part_of = LevelRowOf(level, row);
    }
    result.subtotals.push_back(std::move(rows));
  }
}

}  // namespace xenoscope::correlate
