// What distinguishes the rows of a profile: a number for each dimension that was asked for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/container/inlined_vector.h"
#include "correlate/context.h"

namespace xenoscope::correlate {

enum class Dimension : uint8_t {
  kDomain,
  kVcpu,
  kPcpu,
  kMode,
  kExit,
  kImage,
  kFunction,
  kAddress,
  kProcess,
  kStack,
  kPlacing,
  kSubreason,
  kWaiting,
  kLine,
  kWakeup,
  kBehalf,
  kPage,
  kThread,
  kContainer,
  kHost,
};
inline constexpr size_t kDimensions = 20;

// Whether whole strata have one value of the dimension: those of a vCPU and a context
// with its thread.
[[nodiscard]] constexpr bool IsOfStrata(Dimension dimension) {
  switch (dimension) {
    case Dimension::kDomain:
    case Dimension::kVcpu:
    case Dimension::kExit:
    case Dimension::kSubreason:
    case Dimension::kWaiting:
    case Dimension::kWakeup:
    case Dimension::kThread:
    case Dimension::kContainer:
    case Dimension::kHost:
      return true;
    default:
      return false;
  }
}

using RowKey = absl::InlinedVector<uint64_t, 4>;

// Where the numbers of the dimensions are in a key.
class KeyLayout {
 public:
  // The layout of keys with these dimensions, each of which counts once.
  explicit KeyLayout(std::span<const Dimension> by);

  [[nodiscard]] bool Has(Dimension dimension) const { return PlaceOf(dimension).has_value(); }
  // Returns a key whose numbers are all 0.
  [[nodiscard]] RowKey EmptyKey() const { return RowKey(size_); }
  // Puts the number into the key, if the key has the dimension.
  void Put(Dimension dimension, uint64_t number, RowKey& key) const {
    if (const std::optional<size_t>& place = PlaceOf(dimension)) key[*place] = number;
  }
  // Returns the key's number; 0 if the key does not have the dimension.
  [[nodiscard]] uint64_t Get(Dimension dimension, const RowKey& key) const {
    const std::optional<size_t>& place = PlaceOf(dimension);
    return place ? key[*place] : 0;
  }
  // Puts the context, for the dimensions kExit, kSubreason, kWaiting and kWakeup.
  void PutContext(const Context& context, RowKey& key) const;
  // Returns the part of the context that PutContext put into the key.
  [[nodiscard]] Context GetContext(const RowKey& key) const;

 private:
  const std::optional<size_t>& PlaceOf(Dimension dimension) const {
    return places_[static_cast<size_t>(dimension)];
  }

  std::array<std::optional<size_t>, kDimensions> places_{};  // by dimension: its index in keys
  size_t size_ = 0;                                          // of keys
};

}  // namespace xenoscope::correlate
