// Finds figures in a document, by the keys of its groups, rows and metrics.
#pragma once

#include <cstdint>
#include <string_view>

#include "analysis/document.h"

namespace xenoscope::analysis {

// Returns the group with this key; null if there is none.
const MetricGroup* FindGroup(const Section& section, std::string_view key);
// Returns the row of that name in the group; null if there is none.
const MetricRow* FindRow(const Section& section, std::string_view group, std::string_view row);
// Returns the whole number of that key; 0 if the row has none.
uint64_t Figure(const MetricRow& row, std::string_view key);

}  // namespace xenoscope::analysis
