// Totals of events as text, CSV and JSON: the output of `xenoscope stat`.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "profile/event_totals.h"
#include "report/table/table.h"
#include "report/table/table_text.h"

namespace xenoscope::report {

// Totals of a stretch of time, with what a report says about them.
struct StatReport {
  profile::EventTotals totals;
  profile::TotalsBy by = profile::TotalsBy::kAll;
  std::string subject;  // what was counted: "`sleep 1`", "all CPUs"
  uint32_t runs = 1;    // the number of runs of which the totals are means
  // The end of the stretch, in seconds since counting began; not set: it is the only one.
  std::optional<double> time;
  std::function<std::string(DomainId)> domain_name;  // returns "" for a domain without a name
};

// Returns a line for each total.
Table StatTable(const StatReport& report);

// Of an interval, the table alone.
std::string StatText(const StatReport& report, const TextStyle& style);
// `with_titles`: the first line names the columns.
std::string StatCsv(const StatReport& report, bool with_titles);
nlohmann::ordered_json StatJson(const StatReport& report);

}  // namespace xenoscope::report
