// How much compressed data may grow when it is decompressed. Recordings come from others, and zstd
// makes gigabytes out of a few kilobytes.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace xenoscope {

// What real recordings hold becomes 3 to 8 times as large.
inline constexpr uint64_t kUsualGrowth = 200;
// Beyond that, for all decompressed data that there is at a time: small files may grow more.
inline constexpr uint64_t kExtraGrowth = uint64_t{64} << 20;

// The part of kExtraGrowth that decompressed data has taken, for as long as the data is there.
class ExtraGrowth {
 public:
  ExtraGrowth() = default;
  ExtraGrowth(uint64_t compressed, uint64_t decompressed);
  ExtraGrowth(ExtraGrowth&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)) {}
  ExtraGrowth& operator=(ExtraGrowth&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ExtraGrowth(const ExtraGrowth&) = delete;
  ExtraGrowth& operator=(const ExtraGrowth&) = delete;
  ~ExtraGrowth();

 private:
  uint64_t bytes_ = 0;
};

// What `compressed` bytes may become: kUsualGrowth times as many, and what is left of kExtraGrowth.
// Where the environment has XENOSCOPE_MAX_UNPACKED, a size such as "100G", that is the limit.
// Errors (InvalidArgument): the variable is no size.
absl::StatusOr<uint64_t> GrowthLimit(uint64_t compressed);

// Says that the limit was exceeded, and what to do.
absl::Status GrowthError(uint64_t limit);

}  // namespace xenoscope
