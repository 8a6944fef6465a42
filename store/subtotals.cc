#include "store/subtotals.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/error.h"
#include "base/mode.h"
#include "correlate/context.h"
#include "correlate/estimate.h"
#include "correlate/subtotals.h"

namespace xenoscope::store {
namespace {

using correlate::Dimension;
using correlate::ProfileResult;
using correlate::ProfileRow;
using correlate::RowChoice;

bool Contains(std::span<const Dimension> by, Dimension dimension) {
  return std::ranges::find(by, dimension) != by.end();
}

// What a row is of: host, domain, vCPU, mode, exit, image, function.
using RowName =
    std::tuple<std::string, uint16_t, uint32_t, Mode, correlate::Context, std::string, std::string>;

// Returns the name with these columns alone.
RowName NameOf(const ProfileRow& row, std::span<const Dimension> by) {
  RowName name;
  if (Contains(by, Dimension::kHost)) std::get<0>(name) = row.host;
  if (Contains(by, Dimension::kDomain)) std::get<1>(name) = row.domain.value;
  if (Contains(by, Dimension::kVcpu)) std::get<2>(name) = row.vcpu.value;
  if (Contains(by, Dimension::kMode)) std::get<3>(name) = row.mode;
  if (Contains(by, Dimension::kExit)) {
    std::get<4>(name) = {row.exit.kind, row.exit.nested, row.exit.reason};
  }
  if (Contains(by, Dimension::kImage)) std::get<5>(name) = row.image;
  if (Contains(by, Dimension::kFunction)) std::get<6>(name) = row.function;
  return name;
}

bool IsChosen(const RowChoice& choice, const ProfileRow& row) {
  return !choice.is_chosen || choice.is_chosen(row);
}

// The rows of a level, which chosen rows by more columns are added up to.
class LevelRows {
 public:
  explicit LevelRows(std::span<const Dimension> by) : by_(by) {}

  // `samples` are those of all rows.
  void Add(const ProfileRow& row, double samples) {
    const auto [number, is_new] =
        numbers_.try_emplace(NameOf(row, by_), static_cast<uint32_t>(rows_.size()));
    if (is_new) {
      rows_.push_back(row);
      return;
    }
    has_sums_ = true;
    ProfileRow& sum = rows_[number->second];
    sum.samples += row.samples;
    sum.share += row.share;
    sum.cycles += row.cycles;
    // No sum of random figures has a larger standard error than theirs together.
    const double error = std::sqrt(sum.variance) + std::sqrt(row.variance);
    sum.variance = error * error;
    sum.interval = correlate::IntervalOf(sum.share, sum.variance, samples);
  }

  // Sets for rows by more columns which one of these each is part of. A part of none gets a number
  // that no row has.
  void Link(std::vector<ProfileRow>& parts) const {
    for (ProfileRow& part : parts) {
      const auto number = numbers_.find(NameOf(part, by_));
      part.part_of =
          number == numbers_.end() ? static_cast<uint32_t>(numbers_.size()) : number->second;
    }
  }
  bool has_sums() const { return has_sums_; }
  std::vector<ProfileRow> Take() { return std::move(rows_); }

 private:
  std::span<const Dimension> by_;
  bool has_sums_ = false;  // there are rows that others were added up to
  std::vector<ProfileRow> rows_;
  absl::flat_hash_map<RowName, uint32_t> numbers_;
};

}  // namespace

absl::StatusOr<SubtotalMerger> SubtotalMerger::Of(const std::vector<Dimension>& by,
                                                  const std::vector<Dimension>& chosen_by,
                                                  uint64_t clock_hz) {
  std::vector<Level> levels;
  // The domains of all rows are there without a level.
  for (size_t columns = chosen_by.empty() ? 2 : 1; columns < by.size(); ++columns) {
    const std::vector<Dimension> level(by.begin(), by.begin() + static_cast<ptrdiff_t>(columns));
    std::vector<Dimension> apart = level;
    std::ranges::copy_if(chosen_by, std::back_inserter(apart),
                         [&level](Dimension each) { return !Contains(level, each); });
    XENOSCOPE_ASSIGN_OR_RETURN(Merger merger, Merger::By(std::move(apart), clock_hz));
    levels.push_back({level, std::move(merger)});
  }
  return SubtotalMerger(std::move(levels));
}

WantedSums SubtotalMerger::With(WantedSums rows) const {
  for (const Level& level : levels_) rows.unions = rows.unions || level.merger.wanted().unions;
  return rows;
}

void SubtotalMerger::NameBy(LateNames& names) {
  for (Level& level : levels_) level.merger.NameBy(names);
}

absl::Status SubtotalMerger::Add(const Slice& slice, const Dictionary& dictionary) {
  for (Level& level : levels_) {
    XENOSCOPE_RETURN_IF_ERROR(level.merger.Add(slice, dictionary));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> SubtotalMerger::Finish(const RowChoice& choice, ProfileResult& result) {
  std::vector<std::vector<ProfileRow>>& out =
      choice.is_chosen ? result.chosen_subtotals : result.subtotals;
  std::optional<LevelRows> above;
  bool has_sums = false;
  for (Level& level : levels_) {
    XENOSCOPE_ASSIGN_OR_RETURN(const MergedProfile merged, level.merger.Finish());
    LevelRows rows(level.by);
    for (const ProfileRow& row : merged.result.rows) {
      if (IsChosen(choice, row)) rows.Add(row, result.samples);
    }
    std::vector<ProfileRow>& taken = out.emplace_back(rows.Take());
    if (above) above->Link(taken);
    has_sums = has_sums || rows.has_sums();
    above = std::move(rows);
  }
  if (above) above->Link(result.rows);
  if (!choice.is_chosen) XENOSCOPE_RETURN_IF_ERROR(correlate::CheckSubtotals(result));
  return has_sums;
}

}  // namespace xenoscope::store
