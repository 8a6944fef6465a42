#include "report/html/packed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "base/parallel.h"
#include "report/export/gzip.h"

namespace xenoscope::report {
namespace {

// Returns the pieces as gzip in base64, made on all processors.
absl::StatusOr<std::vector<std::string>> PackedEach(const std::vector<std::string_view>& pieces) {
  std::vector<std::string> packed(pieces.size());
  std::vector<absl::Status> statuses(pieces.size());
  ForEachInParallel(pieces.size(), 1, [&](size_t i) {
    const absl::StatusOr<std::string> compressed = Gzip(pieces[i]);
    statuses[i] = compressed.status();
    if (compressed.ok()) packed[i] = absl::Base64Escape(*compressed);
  });
  for (const absl::Status& status : statuses) XENOSCOPE_RETURN_IF_ERROR(status);
  return packed;
}

}  // namespace

using nlohmann::ordered_json;

void PutNumber(uint64_t value, std::string& bytes) {
  std::array<char, kMostNumberBytes> number;  // NOLINT(cppcoreguidelines-pro-type-member-init): hot
  bytes.append(number.data(), WriteNumber(value, number.data()));
}

absl::StatusOr<std::string> Packed(std::string_view bytes) {
  std::vector<std::string_view> pieces;
  do {
    pieces.push_back(bytes.substr(0, kPackedPiece));
    bytes.remove_prefix(pieces.back().size());
  } while (!bytes.empty());
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<std::string> packed, PackedEach(pieces));
  return absl::StrJoin(packed, " ");
}

absl::StatusOr<double> PackedRatio(const std::vector<std::string_view>& pieces) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<std::string> packed, PackedEach(pieces));
  const auto bytes_of = [](const auto& texts) {
    size_t bytes = 0;
    for (const auto& text : texts) bytes += text.size();
    return static_cast<double>(bytes);
  };
  return bytes_of(packed) / std::max(1.0, bytes_of(pieces));
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
