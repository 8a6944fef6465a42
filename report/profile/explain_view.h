// Why a row of a profile is what it is, and what would narrow its interval: what
// `report --explain FUNCTION` prints. docs/method.md, section 5.6, has the formulas.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/ids.h"
#include "correlate/profile.h"
#include "report/profile/profile_view.h"
#include "report/table/table_text.h"

namespace xenoscope::report {

// Which rows are explained.
struct ExplainSelection {
  std::string function;           // a name, or a pattern as in a shell
  std::vector<DomainId> domains;  // empty: all
};

// The columns of the profile that is explained; ProfileReport::with_parts must be set.
std::vector<correlate::Dimension> ExplainColumns();
// ... and those of ProfileReport::also.
std::vector<correlate::Dimension> ExplainSecondaryColumns();

// What an interval would be.
struct IntervalForecast {
  correlate::Interval with_more;     // with kMoreSamples times the samples, that come as these do
  correlate::Interval places_known;  // if each sample's place were known, and none were alike
  double independent_samples = 0;    // that would give the interval as it is
  static constexpr double kMoreSamples = 4;
};
IntervalForecast IntervalForecastOf(const correlate::ProfileRow& row);

// The selected rows, those of the largest share first.
std::vector<const correlate::ProfileRow*> ExplainedRows(const ProfileReport& report,
                                                        const ExplainSelection& selection);

std::string ExplainText(const ProfileReport& report, const ExplainSelection& selection,
                        const TextStyle& style);
nlohmann::ordered_json ExplainJson(const ProfileReport& report, const ExplainSelection& selection);

}  // namespace xenoscope::report
