// Which rows of a profile are above a limit by more than chance: the output of `xenoscope watch`.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "correlate/difference.h"
#include "correlate/estimate.h"
#include "report/profile/profile_view.h"
#include "report/table/table.h"
#include "report/table/table_text.h"

namespace xenoscope::report {

// What makes an alarm. Shares are in [0, 1].
struct WatchLimits {
  std::optional<double> share{};   // a row's share is above this
  std::optional<double> growth{};  // it grew by more than this since the base
  double alpha = 0.05;             // and the probability of that by chance is below this
};

struct WatchRow {
  std::vector<std::string> words;  // of the columns
  double share = 0;
  correlate::Interval interval;
  // From the base's share to this one. Only with a base.
  double base = 0;
  correlate::Difference growth;
  // The probabilities of being above a limit by chance, corrected for all rows; 1 without a limit.
  double p_share = 1;
  double p_growth = 1;
  bool is_above = false;
  bool has_grown = false;

  [[nodiscard]] bool IsAlarm() const { return is_above || has_grown; }
};

struct Watch {
  std::vector<correlate::Dimension> by;
  std::string event;
  WatchLimits limits;
  bool is_time = true;
  bool of_domain = false;  // shares are parts of one domain
  bool has_base = false;
  double samples = 0;
  double base_samples = 0;
  std::vector<WatchRow> rows;  // alarms first, then by share; rows of the base alone are left out
};

// Compares the profile with the limits, and with the base's if there is one. Both are by the same
// columns. The variances are those of the samples: how much hosts and times differ is not in them.
// If no row's true share is above its limit, the probability of any alarm is at most `alpha` for
// each limit (docs/method.md, section 5.8). O(rows log rows).
[[nodiscard]] Watch WatchProfile(const ProfileReport& now, const ProfileReport* base,
                                 const WatchLimits& limits);

// Returns the number of rows in alarm.
[[nodiscard]] size_t Alarms(const Watch& watch);
// Returns a sentence that names the first rows in alarm: "2 rows are above 5.00%, ...". There is
// one at least.
[[nodiscard]] std::string AlarmText(const Watch& watch);

// These have the rows in alarm, and at most `limit` rows if that is more; 0: all.
[[nodiscard]] std::string WatchText(const Watch& watch, size_t limit, const TextStyle& style);
[[nodiscard]] std::string WatchCsv(const Watch& watch, size_t limit);
[[nodiscard]] nlohmann::ordered_json WatchJson(const Watch& watch, size_t limit);

}  // namespace xenoscope::report
