// How the page's data packs long lists (report/html/web/src/packed.ts): numbers of few bytes each,
// compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/tsc.h"
#include "correlate/binned_sums.h"

namespace xenoscope::report {

// The most bytes of a number as LEB128: 64 bits, seven in each.
inline constexpr size_t kMostNumberBytes = 10;

// Writes the number at `at` as LEB128: seven bits a byte, the lowest first. At most
// kMostNumberBytes. Returns its end.
inline char* WriteNumber(uint64_t value, char* at) {
  for (; value >= 0x80; value >>= 7U) *at++ = static_cast<char>(value | 0x80U);
  *at++ = static_cast<char>(value);
  return at;
}

// Appends the number as LEB128.
void PutNumber(uint64_t value, std::string& bytes);

// Returns the bytes as the page has them: each kPackedPiece bytes as gzip in base64, with a space
// between two of them, so that all processors can pack. Errors: Internal when libdeflate fails.
inline constexpr size_t kPackedPiece = size_t{1} << 18U;
absl::StatusOr<std::string> Packed(std::string_view bytes);

// Returns the length of the pieces, packed each alone, by that of their bytes; 0 where there are
// none. Errors: Internal when libdeflate fails.
[[nodiscard]] absl::StatusOr<double> PackedRatio(const std::vector<std::string_view>& pieces);

// Amounts in bins of time, of things that the page numbers.
struct OverTime {
  Cycles width = 1;  // the bin i is [i, i + 1) * width of the TSC
  std::vector<std::vector<correlate::BinAmount>> things{};
};

// Returns the page's OverTime. `zero` is the instant from which the page counts. An amount is
// rounded to a multiple of `unit`. Errors: Internal when libdeflate fails.
absl::StatusOr<nlohmann::ordered_json> OverTimeJson(const OverTime& of, Tsc zero, double unit);

// Returns the number with three decimals, as the page has numbers of samples.
[[nodiscard]] double Rounded(double samples);

}  // namespace xenoscope::report
