// The sums of a slice as one value of a database. Rows of their own would take four times the
// space, and reading them ten times the time.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "store/byte_planes.h"
#include "store/packed_keys.h"
#include "store/slice.h"
#include "store/store.h"

namespace xenoscope::store {

// Appends the sums, whose keys are the writer's. Sums of tables that are not kExact are rounded to
// 24 significant bits. Errors: those of the writer. O(sums log(sums)).
absl::Status PackTables(const SliceSums& sums, KeyWriter& keys, PlaneWriter& out);
// Returns them as a value.
absl::StatusOr<std::string> Pack(const SliceSums& sums, KeyWriter& keys);

// Reads what PackTables has written. Its memory is used again for each slice.
class Unpacker {
 public:
  // Reads the sums that are wanted into `sums`, and leaves no others there. Errors
  // (InvalidArgument): the bytes are something else. O(sums).
  absl::Status Read(PlaneReader& in, KeyReader& keys, const WantedSums& wanted, SliceSums& sums);
  // The same of a value of Pack.
  absl::Status Read(Bytes packed, KeyReader& keys, const WantedSums& wanted, SliceSums& sums);

 private:
  static constexpr size_t kMostFields = 13;

  // The column of a field.
  template <typename Value>
  std::vector<Value>& ColumnOf(size_t field);
  template <typename Sums>
  absl::Status ReadColumns(PlaneReader& in, uint32_t count);
  template <typename Sums>
  absl::Status ReadTable(PlaneReader& in, KeyReader& keys, const WantedSums& wanted,
                         std::vector<Sums>& rows);

  PlaneReader planes_;
  // By field of the table that is being read.
  std::array<std::vector<EntryId>, kMostFields> ids_;
  std::array<std::vector<float>, kMostFields> floats_;
  std::array<std::vector<double>, kMostFields> doubles_;
  std::array<std::vector<uint64_t>, kMostFields> numbers_;
};

}  // namespace xenoscope::store
