// A slice as bytes by itself: what a guest's agent is sent (record --share).
//
// In ClickHouse's RowBinary (store/clickhouse/row_binary.h): "XSSL" and a version, 32 bits each;
// the head; the names and the sums of store/named_sums.h, as two texts.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "store/own_part.h"

namespace xenoscope::store {

// The most bytes of a slice.
inline constexpr size_t kMaxSliceBytes = size_t{4} << 20;

// Returns the slice as bytes. Errors: ResourceExhausted: they are too many; those of PackNamed.
// O(rows log(rows)).
[[nodiscard]] absl::StatusOr<std::vector<std::byte>> ToBytes(const KeyedSlice& slice);

// Returns the slice, which is as CheckSlice wants it, with names as BoundedName makes them. The
// bytes may be from anywhere. Errors (InvalidArgument): they are no slice, of another version, or
// damaged; ResourceExhausted: they are too many. O(bytes).
[[nodiscard]] absl::StatusOr<KeyedSlice> FromBytes(Bytes bytes);

}  // namespace xenoscope::store
