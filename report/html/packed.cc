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

absl::StatusOr<std::string> Packed(std::string_view bytes) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::string compressed, Gzip(bytes));
  return absl::Base64Escape(compressed);
}

absl::StatusOr<double> PackedRatio(std::string_view bytes) {
  // Four times what deflate looks back at.
  constexpr size_t kPiece = size_t{128} << 10U;
  constexpr size_t kPieces = 8;
  const size_t length = std::min(bytes.size(), kPiece);
  const size_t pieces = std::clamp<size_t>(bytes.size() / kPiece, 1, kPieces);
  if (length == 0) return 0;
  size_t packed = 0;
  for (size_t i = 0; i < pieces; ++i) {
    const size_t at = i * (bytes.size() - length) / std::max<size_t>(pieces - 1, 1);
    XENOSCOPE_ASSIGN_OR_RETURN(const std::string piece, Packed(bytes.substr(at, length)));
    packed += piece.size();
  }
  return static_cast<double>(packed) / static_cast<double>(pieces * length);
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
