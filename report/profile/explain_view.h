// The sources of a row of a profile and of its uncertainty: the output of
// `report --explain FUNCTION`. docs/method.md, section 5.6, has the formulas.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/ids.h"
#include "correlate/profile.h"
#include "report/profile/profile_view.h"
#include "report/table/table_text.h"

namespace xenoscope::report {

// The rows to explain.
struct ExplainSelection {
  std::string function;           // a name, or a pattern as in a shell
  std::vector<DomainId> domains;  // empty: all
};

// Returns the columns of the profile that is explained; ProfileReport::with_parts must be set.
std::vector<correlate::Dimension> ExplainColumns();
// Returns the columns of the first of ProfileReport::further.
std::vector<correlate::Dimension> ExplainSecondaryColumns();

// Forecasts of a row's interval under other conditions.
struct IntervalForecast {
  correlate::Interval with_more;     // interval with kMoreSamples times the samples
  correlate::Interval places_known;  // interval of independent samples with known places
  double independent_samples = 0;    // number of independent samples with the present interval
  static constexpr double kMoreSamples = 4;
};
IntervalForecast IntervalForecastOf(const correlate::ProfileRow& row);

// Returns the selected rows, largest share first.
std::vector<const correlate::ProfileRow*> ExplainedRows(const ProfileReport& report,
                                                        const ExplainSelection& selection);

std::string ExplainText(const ProfileReport& report, const ExplainSelection& selection,
                        const TextStyle& style);
nlohmann::ordered_json ExplainJson(const ProfileReport& report, const ExplainSelection& selection);

}  // namespace xenoscope::report
