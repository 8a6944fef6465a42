#include "analysis/find_figure.h"

#include <algorithm>
#include <variant>

namespace xenoscope::analysis {

const MetricGroup* FindGroup(const Section& section, std::string_view key) {
  const auto found = std::ranges::find(section.groups, key, &MetricGroup::key);
  return found == section.groups.end() ? nullptr : &*found;
}

const MetricRow* FindRow(const Section& section, std::string_view group, std::string_view row) {
  const MetricGroup* const in = FindGroup(section, group);
  if (in == nullptr) return nullptr;
  const auto found = std::ranges::find(in->rows, row, &MetricRow::name);
  return found == in->rows.end() ? nullptr : &*found;
}

uint64_t Figure(const MetricRow& row, std::string_view key) {
  const auto found = std::ranges::find(row.metrics, key, &Metric::key);
  if (found == row.metrics.end()) return 0;
  const auto* const whole = std::get_if<uint64_t>(&found->value);
  return whole == nullptr ? 0 : *whole;
}

}  // namespace xenoscope::analysis
