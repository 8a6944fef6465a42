#include "base/spelling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace xenoscope {
namespace {

// Returns the number of letters inserted, removed, replaced or swapped with their neighbour.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> above(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace

std::string SpellingHint(std::string_view word, std::span<const std::string_view> names) {
  constexpr size_t kMaxWordLength = 64;
  if (word.empty() || word.size() > kMaxWordLength) return "";
  std::string_view nearest;
  size_t min_distance = std::min<size_t>(word.size() / 3, 2) + 1;
  for (const std::string_view name : names) {
    const size_t distance = name.starts_with(word) ? 0 : EditDistance(word, name);
    if (distance >= min_distance) continue;
    min_distance = distance;
    nearest = name;
  }
  return nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest);
}

}  // namespace xenoscope
