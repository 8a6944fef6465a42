#include "report/html/packed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "base/error.h"
#include "report/export/gzip.h"

namespace xenoscope::report {

using nlohmann::ordered_json;

void PutNumber(uint64_t value, std::string& bytes) {
  std::array<char, kMostNumberBytes> number;  // NOLINT(cppcoreguidelines-pro-type-member-init): hot
  bytes.append(number.data(), WriteNumber(value, number.data()));
}

absl::StatusOr<std::string> Packed(const std::string& bytes) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::string compressed, Gzip(bytes));
  return absl::Base64Escape(compressed);
}

bool IsFarLonger(std::string_view bytes, size_t most) {
  constexpr double kBytesOfBase64 = 4.0 / 3;
  constexpr double kQuickIsLonger = 1.5;  // than Packed, at most
  // A part that would be long enough if it were hardly compressed.
  const absl::StatusOr<std::string> part = Gzip(bytes.substr(0, most / 2 * 5), GzipEffort::kQuick);
  return part.ok() && static_cast<double>(part->size()) * kBytesOfBase64 >
                          static_cast<double>(most) * kQuickIsLonger;
}

absl::StatusOr<ordered_json> OverTimeJson(const OverTime& of, Tsc zero, double unit) {
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
  for (const auto& thing : of.things) {
    for (const correlate::BinAmount& each : thing) {
      first = std::min(first, each.bin);
      last = std::max(last, each.bin);
    }
  }
  first = std::min(first, last);
  std::string bytes;
  for (const auto& thing : of.things) {
    PutNumber(thing.size(), bytes);
    uint64_t before = first;
    for (const correlate::BinAmount& each : thing) {
      PutNumber(each.bin - before, bytes);
      PutNumber(static_cast<uint64_t>(std::llround(each.amount / unit)), bytes);
      before = each.bin;
    }
  }
  XENOSCOPE_ASSIGN_OR_RETURN(std::string packed, Packed(bytes));
  return ordered_json{{"begin", static_cast<int64_t>(first * of.width - zero.value)},
                      {"width", of.width},
                      {"bins", last - first + 1},
                      {"unit", unit},
                      {"packed", std::move(packed)}};
}

double Rounded(double samples) { return std::round(samples * 1000) / 1000; }

}  // namespace xenoscope::report
