#include "base/decompression_limit.h"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "base/error.h"

namespace xenoscope {
namespace {

constexpr const char* kVariable = "XENOSCOPE_MAX_UNPACKED";

std::atomic<uint64_t> extra_taken = 0;

absl::StatusOr<uint64_t> ParseSize(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  constexpr std::string_view kUnits = "KMGT";  // powers of 1024
  const bool has_unit = end - rest == 1;
  const size_t unit = has_unit ? kUnits.find(*rest) : 0;
  const size_t shift = has_unit ? 10 * (unit + 1) : 0;
  if (error != std::errc() || (rest != end && !has_unit) || unit == std::string_view::npos ||
      number > std::numeric_limits<uint64_t>::max() >> shift) {
    return InvalidError("{}={} is not a size: write 500M or 100G", kVariable, text);
  }
  return number << shift;
}

}  // namespace

DecompressionBudget::DecompressionBudget(uint64_t compressed, uint64_t decompressed) {
  const uint64_t usual = kMaxCompressionRatio * compressed;
  bytes_ = decompressed > usual ? decompressed - usual : 0;
  extra_taken += bytes_;
}

DecompressionBudget::~DecompressionBudget() { extra_taken -= bytes_; }

absl::StatusOr<uint64_t> DecompressionLimit(uint64_t compressed) {
  const char* const given = std::getenv(kVariable);
  if (given != nullptr && *given != '\0') return ParseSize(given);
  const uint64_t taken = extra_taken.load();
  return kMaxCompressionRatio * compressed +
         (taken < kDecompressionBudgetBytes ? kDecompressionBudgetBytes - taken : 0);
}

absl::Status DecompressionLimitError(uint64_t limit) {
  return ExhaustedError(
      "it decompresses to more than {} bytes, too many for a valid file of its size; if you trust "
      "it, set {} to a sufficient size, such as 100G",
      limit, kVariable);
}

}  // namespace xenoscope
