// A slice as bytes by itself: what a guest's agent is sent (record --share).
//
// A zstd frame of, little-endian: "XSSL", u32 version; the head; the keys of vCPUs, contexts and
// code; and the rows of each table of store/tables.h: a u32 count, then each row's fields. A text
// is a u16 length and so many bytes.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "store/own_part.h"

namespace xenoscope::store {

// The most bytes of a slice, compressed and not.
inline constexpr size_t kMaxSliceBytes = size_t{4} << 20;
inline constexpr size_t kMaxPlainSliceBytes = size_t{16} << 20;

// Returns the slice as bytes. Errors (ResourceExhausted): they are too many. O(rows).
[[nodiscard]] absl::StatusOr<std::vector<std::byte>> ToBytes(const KeyedSlice& slice);

// Returns the slice, which is as CheckSlice wants it, with names as BoundedName makes them. The
// bytes may be from anywhere. Errors (InvalidArgument): they are no slice, of another version, or
// damaged; ResourceExhausted: they are too many. O(bytes).
[[nodiscard]] absl::StatusOr<KeyedSlice> FromBytes(Bytes bytes);

}  // namespace xenoscope::store
