// A finding: a statement about a recording that a rule made from its results.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/document.h"
#include "base/ids.h"

namespace xenoscope::findings {

// The ends of a 95 % confidence interval, in cycles.
struct CycleInterval {
  double low = 0;
  double high = 0;
};

struct Finding {
  std::string_view rule = {};      // key of the rule that made it: "exits"
  std::optional<DomainId> domain;  // the domain that it is about; none: the host or the recording
  std::string text;                // what is so: a sentence without its full stop
  std::string advice;              // what usually causes it and what helps; may be empty
  // The time that it concerns, in cycles, which ranks it. 0: not known.
  double cycles = 0;
  std::optional<CycleInterval> interval;  // of `cycles` where it is an estimate
  std::vector<analysis::Metric> figures;  // what the rule compared, for programs
  std::vector<std::string> command;       // what shows it: a subcommand and its options
};

}  // namespace xenoscope::findings
