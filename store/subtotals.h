// The subtotals of a profile of slices: the profiles by its first columns alone.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "correlate/profile.h"
#include "store/merge.h"

namespace xenoscope::store {

// Adds slices up for each level of a tree, beside the Merger that adds up its rows.
class SubtotalMerger {
 public:
  // Subtotals of rows by the columns `by`. `chosen_by`, which are among them, are those of a choice
  // of rows; empty: all rows are chosen. Cycles are as in Merger::By, and so are errors.
  static absl::StatusOr<SubtotalMerger> Of(const std::vector<correlate::Dimension>& by,
                                           const std::vector<correlate::Dimension>& chosen_by,
                                           uint64_t clock_hz);

  // Returns the sums that are needed together with those of the rows.
  [[nodiscard]] WantedSums With(WantedSums rows) const;

  // As those of Merger.
  void NameBy(LateNames& names);
  absl::Status Add(const Slice& slice, const Dictionary& dictionary);

  // Sets ProfileResult::subtotals, or chosen_subtotals, of the result of Merger::Finish, and which
  // row is part of which; called once. `choice` is by the columns that Of has got. Returns whether
  // an interval is wider than one of its samples would be: a store does not keep how the samples of
  // several rows come together, so the standard errors of rows that are added up here are, too.
  // Errors (Internal): rows do not add up to their subtotals.
  absl::StatusOr<bool> Finish(const correlate::RowChoice& choice, correlate::ProfileResult& result);

 private:
  struct Level {
    std::vector<correlate::Dimension> by;
    Merger merger;  // by these columns, and those of the choice
  };

  explicit SubtotalMerger(std::vector<Level> levels) : levels_(std::move(levels)) {}

  std::vector<Level> levels_;
};

}  // namespace xenoscope::store
