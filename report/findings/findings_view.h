// Findings as text and JSON: `report --findings`, and the first lines of `report`.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "base/ids.h"
#include "base/tsc.h"
#include "findings/finding.h"
#include "report/table/table_text.h"

namespace xenoscope::report {

// What a view of findings says about the recording.
struct FindingsContext {
  std::string input;  // path of the recording or trace, for commands
  Clock clock;
};

// Returns all findings with what usually causes them and the commands that show them.
std::string FindingsText(std::span<const findings::Finding> findings,
                         const FindingsContext& context, const TextStyle& style);

// Returns one line for each of the first findings, and a line that says where the others are; ""
// without findings.
std::string FirstFindingsText(std::span<const findings::Finding> findings,
                              const FindingsContext& context, const TextStyle& style);

// Returns an array with one object for each finding.
nlohmann::ordered_json FindingsJson(std::span<const findings::Finding> findings,
                                    const FindingsContext& context);

}  // namespace xenoscope::report
