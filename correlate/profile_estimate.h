// Estimates a profile from its sums: those of one recording, or of many that were added up
// (docs/method.md, sections 4 and 5).
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "correlate/profile_result.h"
#include "correlate/profile_sums.h"
#include "correlate/share_estimator.h"

namespace xenoscope::correlate {

class ProfileEstimator {
 public:
  struct Options {
    bool is_time = true;  // the event counts time: samples stand for cycles
    bool parts = false;   // rows say which strata they are of
    bool exact = false;   // rows are unions of strata, whose sizes the trace knows
  };
  // Estimates the sizes of strata, and sets them in `sums`, which outlive the estimator. The sums
  // are complete, and of no other estimator yet. O(strata).
  ProfileEstimator(const Options& options, ProfileSums& sums);

  // Returns an estimate for each of the sums' rows, by number; the fields of dimensions are empty.
  // O(parts) on the average.
  [[nodiscard]] std::vector<ProfileRow> Rows() const {
    return Estimate(sums_.rows, options_.exact);
  }
  // The same for other rows of the same samples. `exact`: they are unions of strata.
  [[nodiscard]] std::vector<ProfileRow> RowsOf(const RowSums& rows, bool exact) const {
    return Estimate(rows, exact);
  }
  // The same for each domain.
  [[nodiscard]] std::vector<ProfileRow> Domains() const { return Estimate(sums_.domains, true); }
  // Sets what the result says of all rows together, and the checks of domains. Internal: the rows'
  // samples are not those of the sums. `result` has its rows.
  [[nodiscard]] absl::Status AddTotals(ProfileResult& result) const;

 private:
  [[nodiscard]] std::vector<ProfileRow> Estimate(const RowSums& rows, bool exact) const;

  Options options_;
  const ProfileSums& sums_;
  StratumSizes sizes_;
};

}  // namespace xenoscope::correlate
