// Limits how much compressed data may grow when it is decompressed. Recordings come from outside,
// and zstd makes gigabytes out of a few kilobytes.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace xenoscope {

// The largest ratio that is always allowed. The data of real recordings becomes 3 to 8 times as
// large.
inline constexpr uint64_t kMaxCompressionRatio = 200;
// The bytes beyond that ratio, for all decompressed data that exists at a time: small files may
// grow more.
inline constexpr uint64_t kDecompressionBudgetBytes = uint64_t{64} << 20;

// The part of kDecompressionBudgetBytes that decompressed data has taken, for as long as the data
// is there.
class DecompressionBudget {
 public:
  DecompressionBudget() = default;
  DecompressionBudget(uint64_t compressed, uint64_t decompressed);
  DecompressionBudget(DecompressionBudget&& other) noexcept
      : bytes_(std::exchange(other.bytes_, 0)) {}
  DecompressionBudget& operator=(DecompressionBudget&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  DecompressionBudget(const DecompressionBudget&) = delete;
  DecompressionBudget& operator=(const DecompressionBudget&) = delete;
  ~DecompressionBudget();

 private:
  uint64_t bytes_ = 0;
};

// Returns the number of bytes that `compressed` bytes may become: kMaxCompressionRatio times as
// many, and the rest of kDecompressionBudgetBytes. The environment variable XENOSCOPE_MAX_UNPACKED,
// a size such as "100G", replaces that limit. Errors (InvalidArgument): the variable is no size.
[[nodiscard]] absl::StatusOr<uint64_t> DecompressionLimit(uint64_t compressed);

// Returns the error that says that the limit was exceeded, and what to do.
[[nodiscard]] absl::Status DecompressionLimitError(uint64_t limit);

}  // namespace xenoscope
