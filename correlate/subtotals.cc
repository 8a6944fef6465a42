#include "correlate/subtotals.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/ids.h"

namespace xenoscope::correlate {
namespace {

// Sums of the same samples in different orders differ by rounding.
constexpr double kSumRounding = 1e-6;

// Compares the samples of the parts of each row with its own.
absl::Status CheckLevel(const std::vector<double>& parts, const std::vector<ProfileRow>& rows) {
  for (size_t row = 0; row < rows.size(); ++row) {
    if (std::abs(parts[row] - rows[row].samples) <=
        kSumRounding * std::max(rows[row].samples, 1.0)) {
      continue;
    }
    return InternalError("a subtotal has {} samples, but its rows have {} together",
                         rows[row].samples, parts[row]);
  }
  return absl::OkStatus();
}

absl::Status CheckDomainSums(const ProfileResult& result) {
  std::map<DomainId, size_t> numbers;
  for (size_t i = 0; i < result.domains.size(); ++i) numbers[result.domains[i].domain] = i;
  std::vector<double> parts(result.domains.size());
  for (const ProfileRow& row : result.subtotals.front()) {
    const auto number = numbers.find(row.domain);
    if (number == numbers.end()) return InternalError("a subtotal is of no domain");
    parts[number->second] += row.samples;
  }
  return CheckLevel(parts, result.domains);
}

}  // namespace

absl::Status CheckLevels(std::span<const std::vector<ProfileRow>> levels,
                         const std::vector<ProfileRow>& rows) {
  for (size_t level = 0; level < levels.size(); ++level) {
    const std::vector<ProfileRow>& above = levels[level];
    const bool is_last = level + 1 == levels.size();
    std::vector<double> parts(above.size());
    for (const ProfileRow& row : is_last ? rows : levels[level + 1]) {
      if (row.part_of >= above.size()) return InternalError("a row is part of no subtotal");
      parts[row.part_of] += row.samples;
    }
    XENOSCOPE_RETURN_IF_ERROR(CheckLevel(parts, above));
  }
  return absl::OkStatus();
}

absl::Status CheckSubtotals(const ProfileResult& result) {
  if (result.subtotals.empty()) return absl::OkStatus();
  XENOSCOPE_RETURN_IF_ERROR(CheckDomainSums(result));
  return CheckLevels(result.subtotals, result.rows);
}

}  // namespace xenoscope::correlate
