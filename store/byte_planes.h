// Columns of numbers as bytes that compress well: the lowest bytes of all numbers, then the next
// ones, and so on. What neighbours have in common is together, and reading takes no branch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"

struct ZSTD_DCtx_s;

namespace xenoscope::store {

// Appends columns.
class PlaneWriter {
 public:
  // Appends a number by itself.
  void Number(uint32_t value);
  // Appends a column. O(values).
  template <typename Value>
  requires std::is_arithmetic_v<Value>
  void Column(std::span<const Value> values);
  // Appends a column of numbers most of which are close to the ones before them.
  void Differences(std::span<const uint32_t> values);

  // Returns all of it, compressed. Errors (Internal): zstd fails.
  [[nodiscard]] absl::StatusOr<std::string> Compressed() const;

 private:
  std::string bytes_;
};

// Reads what a PlaneWriter has written, in the same order. The bytes may be from anywhere.
class PlaneReader {
 public:
  // Decompresses the bytes, in place of what it had before, whose memory is used again. Errors
  // (InvalidArgument): they are not compressed numbers, or more than 256 MiB of them.
  absl::Status Open(Bytes compressed);

  // Return false where the bytes end too early.
  [[nodiscard]] bool Number(uint32_t& value);
  template <typename Value>
  requires std::is_arithmetic_v<Value>
  [[nodiscard]] bool Column(size_t count, std::vector<Value>& values);
  [[nodiscard]] bool Differences(size_t count, std::vector<uint32_t>& values);

  // Leaves bytes out.
  [[nodiscard]] bool Skip(size_t bytes);

  // Returns the bytes that are left.
  [[nodiscard]] size_t left() const { return bytes_.size() - at_; }

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
  std::vector<std::byte> bytes_;
  size_t at_ = 0;
};

}  // namespace xenoscope::store
